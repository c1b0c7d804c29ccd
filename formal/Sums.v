(** * Sums with products

    [docs/proofs/sums.md] proves the same for all sums of units. *)

From Coq Require Import Reals QArith Qreals ZArith List Lia Lra Psatz Bool.
From dpcausal Require Import Grid Frame Moments.
Import ListNotations.
Open Scope R_scope.

(** ** Received moments *)

Record received_unit := Received { in_arm : option nat; outcome : Z; received : bool }.
Definition sign (b : bool) : Z := if b then 1%Z else (-1)%Z.

Inductive received_sum := RTotal | RDeficit | RReceived | RProduct.
Definition received_value (u : received_unit) (p : received_sum) : Z :=
  match p with
  | RTotal => outcome u
  | RDeficit => deficit (outcome u)
  | RReceived => sign (received u)
  | RProduct => (sign (received u) * outcome u)%Z
  end.

Definition received_parts (n : norm) : list (received_sum * Q) :=
  [(RTotal, Zq (2 * G)); (RDeficit, Zq (match n with l1 => 4 | l2 => 2 end * G)); (RReceived, Zq 8); (RProduct, Zq (8 * G))].

Definition received_coordinate : Type := (nat * received_sum) + extra.
Definition received_part (u : received_unit) (c : received_coordinate) : Z :=
  match c with
  | inl (j, p) => in_cell (in_arm u) j (received_value u p)
  | inr Treated => in_cell (in_arm u) 1 1
  | inr Compared => match in_arm u with Some _ => 1 | None => 0 end
  end.

Definition received_sizes (p : protects) (leaves : bool) (n : norm) : list (received_coordinate * Q) :=
  match p with
  | record => (inr Treated, arm_size_weight n) ::
      if leaves then [(inr Compared, (match n with l1 => 4 # 3 | l2 => 2 end)%Q)] else []
  | _ => []
  end.

Definition received_moments_sensitivity (p : protects) (leaves : bool) (n : norm) : sensitivity received_coordinate :=
  Sensitivity n (map (fun c => (inl (fst c), snd c)) (by_part (received_parts n) 2) ++ received_sizes p leaves n)
    (match n, p with
     | l2, _ => root_above (17 # 16) + / Zq (2 * G)
     | l1, record => 2
     | l1, record_within_arm => (81 # 64) + / Zq (4 * G)
     | l1, outcome_only => (5 # 4) + / Zq (4 * G)
     end)%Q.

Definition received_may (p : protects) (u v : received_unit) : Prop :=
  on_grid (outcome u) /\ on_grid (outcome v)
  /\ (p <> record -> in_arm u = in_arm v) /\ (p = outcome_only -> received u = received v)
  /\ (in_arm u = None \/ in_arm u = Some 0%nat \/ in_arm u = Some 1%nat)
  /\ (in_arm v = None \/ in_arm v = Some 0%nat \/ in_arm v = Some 1%nat).

(** A unit that stays in its arm, with its sign (true) or without. *)
Definition stays_bound (n : norm) (same : bool) : R :=
  match n, same with
  | l1, true => 5 / 4 + / 4194304
  | l1, false => 81 / 64 + / 4194304
  | l2, _ => 17 / 16 + / 2097152 + (/ 2097152) ^ 2
  end.

Lemma received_stays n u v : on_grid (outcome u) -> on_grid (outcome v) ->
  moved n (received_parts n) (fun p => IZR (received_value u p - received_value v p))
  <= stays_bound n (eqb (received u) (received v)).
Proof.
  intros Hu Hv. destruct (stays _ _ Hu Hv) as (x & d & e & X & A & B & D & C & E). unfold grid in *.
  assert (S : forall s t, Rabs (IZR (sign s * outcome u - sign t * outcome v)) =
    if eqb s t then 2 * 1048576 * x else 2 * 1048576 * e).
  { intros [] []; cbn [eqb sign]; rewrite ?Z.mul_1_l.
    - exact A.
    - replace (outcome u - -1 * outcome v)%Z with (outcome u + outcome v)%Z by ring. exact C.
    - replace (-1 * outcome u - outcome v)%Z with (- (outcome u + outcome v))%Z by ring. now rewrite opp_IZR, Rabs_Ropp.
    - replace (-1 * outcome u - -1 * outcome v)%Z with (- (outcome u - outcome v))%Z by ring. now rewrite opp_IZR, Rabs_Ropp. }
  assert (T : forall s t, Rabs (IZR (sign s - sign t)) = if eqb s t then 0 else 2).
  { intros [] []; cbn; rewrite ?Rabs_R0; try reflexivity; unfold Rabs; destruct Rcase_abs; lra. }
  unfold received_parts. cbn [moved received_value]. rewrite !cost_abs, A, B, S, T.
  assert (Q : d / 2 <= 2 * x * (1 - x) + / 2097152) by lra.
  assert (Q2 : (d / 2) ^ 2 <= (2 * x * (1 - x) + / 2097152) ^ 2) by (apply pow_incr; lra).
  assert (F : x ^ 2 + (2 * x * (1 - x)) ^ 2 <= 1 - (1 - x)).
  { assert (0 <= (1 - x) * (x * (1 - 2 * x) ^ 2)) by (apply Rmult_le_pos; [lra|]; apply Rmult_le_pos; [lra|apply pow2_ge_0]). nra. }
  assert (H : 0 <= 2 * x * (1 - x) <= 1 / 2) by nra.
  assert (Q3 : x ^ 2 + (d / 2) ^ 2 <= x + / 2097152 + (/ 2097152) ^ 2) by nra.
  assert (X2 : x ^ 2 <= 1) by nra. assert (E2 : e ^ 2 <= 1 - x) by nra.
  assert (M : x + x * (1 - x) + (1 - x) / 4 <= 65 / 64) by (assert (0 <= (x - 7 / 8) ^ 2) by apply pow2_ge_0; nra).
  pose proof (stays_l1 x d X D).
  destruct (eqb (received u) (received v)), n; cbn [stays_bound]; numbers; lra.
Qed.

Lemma received_joins n u : on_grid (outcome u) ->
  moved n (received_parts n) (fun p => IZR (received_value u p)) <= match n with l1 => 3 / 4 | l2 => 9 / 32 end.
Proof.
  intros Hu. destruct (joins _ Hu) as (y & c & Y & A & B & C). unfold grid in *.
  assert (S : Rabs (IZR (sign (received u) * outcome u)) = 1048576 * y).
  { destruct (received u); cbn [sign]; rewrite ?Z.mul_1_l; [exact A|].
    replace (-1 * outcome u)%Z with (- outcome u)%Z by ring. now rewrite opp_IZR, Rabs_Ropp. }
  assert (T : Rabs (IZR (sign (received u))) = 1) by (destruct (received u); cbn; unfold Rabs; destruct Rcase_abs; lra).
  unfold received_parts. cbn [moved received_value]. rewrite !cost_abs, A, B, S, T.
  pose proof (joins_l1 y c Y C). pose proof (joins_l2 y c Y C).
  assert (y ^ 2 <= 1) by nra. destruct n; numbers; lra.
Qed.

Theorem received_moments p leaves n :
  bounded (received_may p) (answer received_part) (received_moments_sensitivity p leaves n).
Proof.
  apply bounded_by_units. intros u v (Hu & Hv & S & K & Cu & Cv). unfold within, received_moments_sensitivity.
  cbn [in_norm coordinates bound]. rewrite moved_app.
  rewrite (moved_map n (fun c => inl c : received_coordinate)).
  eapply Rle_trans; [apply Rplus_le_compat_r; eapply Rle_trans;
    [|apply (by_part_moves n (received_parts n) 2 (in_arm u) (in_arm v) (received_value u) (received_value v)); destruct n; weights]|].
  { right. apply moved_ext. intros [j q]. reflexivity. }
  assert (A := received_stays n u v Hu Hv). assert (B := received_joins n u Hu). assert (C := received_joins n v Hv).
  assert (R0 : stays_bound n (eqb (received u) (received v)) <= stays_bound n false) by
    (destruct n, (eqb (received u) (received v)); cbn [stays_bound]; lra).
  unfold cell_change.
  destruct p; cbn [received_sizes moved].
  - clear S K. destruct Cu as [Cu|[Cu|Cu]], Cv as [Cv|[Cv|Cv]]; unfold received_part; rewrite Cu, Cv; cbn [in_cell Nat.eqb];
      destruct leaves, n; cbn [moved most arm_size_weight stays_bound] in *; open_cost; constants; lra.
  - rewrite <- (S ltac:(discriminate)). destruct (in_arm u); [rewrite Nat.eqb_refl|];
      destruct n; cbn [most stays_bound] in *; numbers; lra.
  - rewrite <- (S ltac:(discriminate)). rewrite (K eq_refl), eqb_reflx in A. destruct (in_arm u); [rewrite Nat.eqb_refl|];
      destruct n; cbn [most stays_bound] in *; numbers; lra.
Qed.

(** ** Cutoff moments: both sides of a cutoff *)

Record cutoff_unit := Near { side : option nat; distance : Z; result : Z }.
Definition on_fine (z : Z) : Prop := (- fine <= z <= fine)%Z.

Inductive cutoff_sum := CTotal | CProduct | CDistance | CSize | CSpread | CDeficit.
Definition cutoff_value (u : cutoff_unit) (p : cutoff_sum) : Z :=
  match p with
  | CTotal => result u
  | CProduct => (distance u * result u)%Z
  | CDistance => distance u
  | CSize => 1%Z
  | CSpread => (fine * fine - distance u * distance u)%Z
  | CDeficit => (fine * fine - result u * result u)%Z
  end.
Definition cutoff_parts : list (cutoff_sum * Q) :=
  [(CTotal, Zq (2 * fine)); (CProduct, Zq (fine * fine)); (CDistance, Zq (2 * fine)); (CSize, Zq 4);
   (CSpread, Zq (4 * (fine * fine))); (CDeficit, Zq (2 * (fine * fine)))].
Definition cutoff_part (u : cutoff_unit) (c : nat * cutoff_sum) : Z := in_cell (side u) (fst c) (cutoff_value u (snd c)).

Definition cutoff_moments_sensitivity (p : protects) (n : norm) : sensitivity (nat * cutoff_sum) :=
  Sensitivity n (by_part cutoff_parts 2)
    (match n, p with
     | l1, outcome_only => 3 | l1, _ => 9 # 2
     | l2, outcome_only => root_above 5 | l2, _ => root_above (85 # 16)
     end)%Q.

Definition cutoff_may (p : protects) (u v : cutoff_unit) : Prop :=
  on_fine (distance u) /\ on_fine (result u) /\ on_fine (distance v) /\ on_fine (result v)
  /\ (p = outcome_only -> side u = side v /\ distance u = distance v).

(** Shares of 1: the moves of a number, of its square and of a product, with a and b half of the moves. *)
Lemma share_moves r s : -1 <= r <= 1 -> -1 <= s <= 1 -> exists a p, 0 <= a <= 1 /\ 0 <= p <= 1 - a /\
  Rabs (r - s) = 2 * a /\ Rabs (r + s) = 2 * p /\ Rabs (s * s - r * r) = 4 * a * p.
Proof.
  intros R S. exists (Rabs (r - s) / 2), (Rabs (r + s) / 2).
  assert (A := Rabs_pos (r - s)). assert (B := Rabs_pos (r + s)).
  assert (C : Rabs (r - s) + Rabs (r + s) <= 2) by (unfold Rabs; destruct (Rcase_abs (r - s)), (Rcase_abs (r + s)); lra).
  repeat split; try lra.
  replace (s * s - r * r) with (- ((r - s) * (r + s))) by ring. rewrite Rabs_Ropp, Rabs_mult. lra.
Qed.

Lemma product_moves q r s t a p b o : Rabs (q - s) = 2 * a -> Rabs (q + s) = 2 * p -> Rabs (r - t) = 2 * b ->
  Rabs (r + t) = 2 * o -> Rabs (q * r - s * t) <= 2 * (a * o + p * b).
Proof.
  intros A P B O. replace (q * r - s * t) with (((q - s) * (r + t) + (q + s) * (r - t)) / 2) by field.
  assert (T := Rabs_triang ((q - s) * (r + t)) ((q + s) * (r - t))). rewrite !Rabs_mult, A, P, B, O in T.
  unfold Rdiv. rewrite Rabs_mult, (Rabs_pos_eq (/ 2)) by lra. lra.
Qed.

Lemma fine_share z : on_fine z -> -1 <= IZR z / 1024 <= 1.
Proof. unfold on_fine, fine. intros [A B]. apply IZR_le in A, B. cbn [Z.opp] in A. lra. Qed.

Lemma abs_share c x : 0 < c -> Rabs x = c * Rabs (x / c).
Proof. intros C. rewrite <- (Rabs_pos_eq c) at 1 by lra. rewrite <- Rabs_mult. f_equal. field. lra. Qed.

(** The moves of one unit as shares of the largest. *)
Lemma cutoff_shares (u v : cutoff_unit) : on_fine (distance u) -> on_fine (result u) -> on_fine (distance v) -> on_fine (result v) ->
  exists a p b o m, 0 <= a <= 1 /\ 0 <= p <= 1 - a /\ 0 <= b <= 1 /\ 0 <= o <= 1 - b /\ 0 <= m <= 2 * (a * o + p * b) /\
  (distance u = distance v -> a = 0) /\
  Rabs (IZR (distance u - distance v)) = 1024 * (2 * a) /\ Rabs (IZR (result u - result v)) = 1024 * (2 * b) /\
  Rabs (IZR (distance u * result u - distance v * result v)) = 1048576 * m /\
  Rabs (IZR ((fine * fine - distance u * distance u) - (fine * fine - distance v * distance v))) = 1048576 * (4 * a * p) /\
  Rabs (IZR ((fine * fine - result u * result u) - (fine * fine - result v * result v))) = 1048576 * (4 * b * o).
Proof.
  intros A B C D. apply fine_share in A, B, C, D.
  rewrite ?minus_IZR, ?mult_IZR. set (q := IZR (distance u)) in *. set (r := IZR (result u)) in *.
  set (s := IZR (distance v)) in *. set (t := IZR (result v)) in *.
  destruct (share_moves _ _ A C) as (a & p & A1 & A2 & A3 & A4 & A5).
  destruct (share_moves _ _ B D) as (b & o & B1 & B2 & B3 & B4 & B5).
  assert (P := product_moves _ _ _ _ _ _ _ _ A3 A4 B3 B4).
  exists a, p, b, o, (Rabs (q / 1024 * (r / 1024) - s / 1024 * (t / 1024))).
  repeat split; try lra; try apply Rabs_pos.
  - intros E. unfold q, s in A3. rewrite E, Rminus_eq_0, Rabs_R0 in A3. lra.
  - rewrite (abs_share 1024) by lra. rewrite <- A3. do 2 f_equal. field.
  - rewrite (abs_share 1024) by lra. rewrite <- B3. do 2 f_equal. field.
  - rewrite (abs_share 1048576) by lra. do 2 f_equal. field.
  - rewrite (abs_share 1048576) by lra. rewrite <- A5. do 2 f_equal. field.
  - rewrite (abs_share 1048576) by lra. rewrite <- B5. do 2 f_equal. field.
Qed.

Lemma cutoff_stays n u v : on_fine (distance u) -> on_fine (result u) -> on_fine (distance v) -> on_fine (result v) ->
  moved n cutoff_parts (fun p => IZR (cutoff_value u p - cutoff_value v p)) <= match n with l1 => 15 / 4 | l2 => 85 / 16 end
  /\ (distance u = distance v ->
  moved n cutoff_parts (fun p => IZR (cutoff_value u p - cutoff_value v p)) <= match n with l1 => 3 | l2 => 5 end).
Proof.
  intros A B C D. destruct (cutoff_shares u v A B C D) as (a & p & b & o & m & Ha & Hp & Hb & Ho & Hm & K & E1 & E2 & E3 & E4 & E5).
  unfold cutoff_parts. cbn [moved cutoff_value]. rewrite !cost_abs, E1, E2, E3, E4, E5. clear E1 E2 E3 E4 E5 A B C D.
  assert (C0 : a * o + p * b <= a + b - 2 * (a * b)) by nra.
  assert (C1 : 0 <= a * b) by nra. assert (C2 : 0 <= (1 - a) * (1 - b)) by nra.
  assert (C3 : 0 <= a * (1 - b)) by nra. assert (C4 : 0 <= b * (1 - a)) by nra.
  assert (M1 : m <= 2 * (a + b - 2 * (a * b))) by lra.
  assert (M2 : m <= 2) by nra. assert (M3 : m ^ 2 <= 2 * m) by nra.
  assert (S1 : 0 <= 4 * a * p <= 1) by (assert (0 <= (1 - 2 * a) ^ 2) by apply pow2_ge_0; nra).
  assert (S2 : 0 <= 4 * b * o <= 4 * b * (1 - b)) by nra.
  assert (S3 : 4 * b * (1 - b) <= 1) by (assert (0 <= (1 - 2 * b) ^ 2) by apply pow2_ge_0; nra).
  assert (a ^ 2 <= a) by nra. assert (b ^ 2 <= b) by nra.
  set (sa := 4 * a * p) in *. set (sb := 4 * b * o) in *.
  assert (sa ^ 2 <= 1) by nra. assert (sb ^ 2 <= 1) by nra.
  assert (T : Rabs (IZR (1 - 1)) = 0) by (constants; reflexivity). rewrite T.
  split; [|intros E; specialize (K E); subst a].
  - clearbody sa sb. clear Hm C0 K Hp Ho. destruct n; numbers; lra.
  - assert (sa = 0) by (unfold sa; ring). assert (sb ^ 2 <= (4 * b * (1 - b)) ^ 2) by (apply pow_incr; lra).
    assert (F : b ^ 2 + (2 * b * (1 - b)) ^ 2 <= 1 - (1 - b)).
    { assert (0 <= (1 - b) * (b * (1 - 2 * b) ^ 2)) by (apply Rmult_le_pos; [lra|]; apply Rmult_le_pos; [lra|apply pow2_ge_0]). nra. }

    assert (m ^ 2 <= (2 * b) ^ 2) by (apply pow_incr; lra).
    clearbody sa sb. subst sa. clear Hm C0 C1 C2 C3 C4 Hp Ho. destruct n; numbers; nra.
Qed.

Lemma cutoff_joins n u : on_fine (distance u) -> on_fine (result u) ->
  moved n cutoff_parts (fun p => IZR (cutoff_value u p)) <= match n with l1 => 9 / 4 | l2 => 25 / 16 end.
Proof.
  intros A B. apply fine_share in A, B. unfold cutoff_parts. cbn [moved cutoff_value]. rewrite !cost_abs.
  rewrite ?minus_IZR, ?mult_IZR. set (q := IZR (distance u)) in *. set (r := IZR (result u)) in *. unfold fine.
  rewrite (Rabs_mult q r). assert (Q := Rabs_pos q). assert (R := Rabs_pos r).
  assert (Qm : Rabs q <= 1024) by (apply Rabs_le; lra). assert (Rm : Rabs r <= 1024) by (apply Rabs_le; lra).
  replace (q * q) with (Rabs q * Rabs q) by (rewrite <- Rabs_mult; apply Rabs_pos_eq; nra).
  replace (r * r) with (Rabs r * Rabs r) by (rewrite <- Rabs_mult; apply Rabs_pos_eq; nra).
  clear A B. set (a := Rabs q) in *. set (b := Rabs r) in *. clearbody a b. clear q r.
  rewrite Rabs_R1, (Rabs_pos_eq (_ - a * a)), (Rabs_pos_eq (_ - b * b)) by nra.
  assert (exists x y, a = 1024 * x /\ b = 1024 * y /\ 0 <= x <= 1 /\ 0 <= y <= 1) as (x & y & Ex & Ey & X & Y)
    by (exists (a / 1024), (b / 1024); repeat split; lra). subst a b.
  assert (0 <= (1 - x) * (1 - y)) by nra. assert (0 <= x * (1 - y)) by nra. assert (0 <= y * (1 - x)) by nra.
  destruct n; numbers.
  - nra.
  - assert (exists s t, s = x ^ 2 /\ t = y ^ 2 /\ 0 <= s <= 1 /\ 0 <= t <= 1) as (s & t & Es & Et & S & T)
      by (exists (x ^ 2), (y ^ 2); repeat split; nra).
    assert (0 <= s * t) by nra. assert (s * t <= t) by nra.
    replace ((1024 * y / 2048) ^ 2) with (t / 4) by (subst; field).
    replace ((1024 * x * (1024 * y) / 1048576) ^ 2) with (s * t) by (subst; field).
    replace ((1024 * x / 2048) ^ 2) with (s / 4) by (subst; field).
    replace (((1024 * 1024 - 1024 * x * (1024 * x)) / 4194304) ^ 2) with ((1 - s) ^ 2 / 16) by (subst; field).
    replace (((1024 * 1024 - 1024 * y * (1024 * y)) / 2097152) ^ 2) with ((1 - t) ^ 2 / 4) by (subst; field).
    nra.
Qed.

Theorem cutoff_moments p n : bounded (cutoff_may p) (answer cutoff_part) (cutoff_moments_sensitivity p n).
Proof.
  apply bounded_by_units. intros u v (A & B & C & D & S). unfold within, cutoff_moments_sensitivity.
  cbn [in_norm coordinates bound].
  eapply Rle_trans; [apply (by_part_moves n cutoff_parts 2 (side u) (side v) (cutoff_value u) (cutoff_value v)); weights|].
  destruct (cutoff_stays n u v A B C D) as [K L]. assert (J := cutoff_joins n u A B). assert (J' := cutoff_joins n v C D).
  destruct p.
  1, 2: apply cell_change_within; [|eapply Rle_trans; [exact K|]|intros _; split; eapply Rle_trans; [exact J| |exact J'|]];
    destruct n; cbn [most]; numbers; lra.
  destruct (S eq_refl) as [S1 S2]. rewrite <- S1. specialize (L S2).
  unfold cell_change. destruct (side u); [rewrite Nat.eqb_refl; eapply Rle_trans; [exact L|]|]; destruct n; cbn [most]; numbers; lra.
Qed.
