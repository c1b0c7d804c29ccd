(** * The frame of all proofs of queries

    A table is a list of units. Neighbouring tables differ in one unit. An answer is a list of integers; how far it
    moves between neighbours is measured in the weighted l1 or l2 norm of [queries/query.py]. *)

From Coq Require Import Reals QArith Qreals ZArith List Lia Lra Psatz Bool.
Import ListNotations.
Open Scope R_scope.

Inductive norm := l1 | l2.

(** What may differ between neighbours: [protects] of a schema. *)
Inductive protects := record | record_within_arm | outcome_only.

(** ** Norms *)

(** What one coordinate adds to the norm (l1) or to its square (l2). *)
Definition cost (n : norm) (x : R) (w : Q) : R :=
  match n with l1 => Rabs x / Q2R w | l2 => (x / Q2R w) ^ 2 end.

Definition most (n : norm) (b : Q) : R := match n with l1 => Q2R b | l2 => Q2R b ^ 2 end.

(** [Sensitivity] of [queries/query.py]: coordinates with their weights, and the bound. *)
Record sensitivity (C : Type) := Sensitivity { in_norm : norm; coordinates : list (C * Q); bound : Q }.
Arguments Sensitivity {C}. Arguments in_norm {C}. Arguments coordinates {C}. Arguments bound {C}.

Fixpoint moved {C : Type} (n : norm) (cs : list (C * Q)) (d : C -> R) : R :=
  match cs with [] => 0 | (c, w) :: rest => cost n (d c) w + moved n rest d end.

Definition within {C} (s : sensitivity C) (d : C -> R) : Prop :=
  moved (in_norm s) (coordinates s) d <= most (in_norm s) (bound s).

Definition positive_weights {C} (cs : list (C * Q)) : Prop := Forall (fun c => 0 < Q2R (snd c)) cs.

Lemma cost_0 n w : cost n 0 w = 0.
Proof. destruct n; simpl; [rewrite Rabs_R0|]; unfold Rdiv; ring. Qed.

Lemma cost_nonneg n x w : 0 < Q2R w -> 0 <= cost n x w.
Proof.
  intros; destruct n; cbn [cost]; [|apply pow2_ge_0].
  apply Rmult_le_pos; [apply Rabs_pos|left; now apply Rinv_0_lt_compat].
Qed.

Lemma cost_opp n x w : cost n (- x) w = cost n x w.
Proof. destruct n; simpl; [now rewrite Rabs_Ropp|unfold Rdiv; ring]. Qed.

Lemma moved_nonneg {C} n (cs : list (C * Q)) d : positive_weights cs -> 0 <= moved n cs d.
Proof.
  induction 1 as [|[c w] rest H]; simpl in *; [lra|].
  pose proof (cost_nonneg n (d c) w H). lra.
Qed.

Lemma moved_app {C} n (a b : list (C * Q)) d : moved n (a ++ b) d = moved n a d + moved n b d.
Proof. induction a as [|[c w] a IH]; simpl; [|rewrite IH]; ring. Qed.

Lemma moved_map {C D} n (f : C -> D) (cs : list (C * Q)) d :
  moved n (map (fun c => (f (fst c), snd c)) cs) d = moved n cs (fun c => d (f c)).
Proof. induction cs as [|[c w] cs IH]; simpl; [|rewrite IH]; reflexivity. Qed.

Lemma moved_ext {C} n (cs : list (C * Q)) d e : (forall c, d c = e c) -> moved n cs d = moved n cs e.
Proof. intros H; induction cs as [|[c w] cs IH]; simpl; [|rewrite IH, H]; reflexivity. Qed.

Lemma moved_opp {C} n (cs : list (C * Q)) d : moved n cs (fun c => - d c) = moved n cs d.
Proof. induction cs as [|[c w] cs IH]; simpl; [|rewrite IH, cost_opp]; reflexivity. Qed.

Lemma moved_0 {C} n (cs : list (C * Q)) d : (forall c, d c = 0) -> moved n cs d = 0.
Proof. intros H; induction cs as [|[c w] cs IH]; simpl; [|rewrite IH, H, cost_0]; lra. Qed.

(** ** Neighbours, and sums of per-unit integers *)

Inductive neighbours {U : Type} (may : U -> U -> Prop) : list U -> list U -> Prop :=
  replaced before u v after : may u v -> neighbours may (before ++ u :: after) (before ++ v :: after).

Fixpoint answer {U C : Type} (part : U -> C -> Z) (table : list U) (c : C) : Z :=
  match table with [] => 0%Z | u :: rest => (part u c + answer part rest c)%Z end.

Lemma answer_app {U C} (part : U -> C -> Z) a b c : answer part (a ++ b) c = (answer part a c + answer part b c)%Z.
Proof. induction a; simpl; [|rewrite IHa]; ring. Qed.

(** A sum moves by the difference of the two units' own parts: whatever the other units are. *)
Theorem sum_moves {U C} (part : U -> C -> Z) may s t : neighbours may s t ->
  exists u v, may u v /\ forall c, (answer part s c - answer part t c = part u c - part v c)%Z.
Proof.
  intros [before u v after H]. exists u, v. split; [exact H|].
  intros c. rewrite !answer_app. simpl. ring.
Qed.

(** The claim of a page in [docs/proofs]. *)
Definition bounded {U C} (may : U -> U -> Prop) (given : list U -> C -> Z) (s : sensitivity C) : Prop :=
  forall table other, neighbours may table other -> within s (fun c => IZR (given table c - given other c)).

Theorem bounded_by_units {U C} (may : U -> U -> Prop) (part : U -> C -> Z) (s : sensitivity C) :
  (forall u v, may u v -> within s (fun c => IZR (part u c - part v c))) -> bounded may (answer part) s.
Proof.
  intros H table other N. destruct (sum_moves part may table other N) as (u & v & M & E).
  specialize (H u v M). unfold within in *.
  erewrite moved_ext; [exact H|]. intros c. simpl. now rewrite E.
Qed.

(** Fewer neighbours need no larger bound. *)
Theorem bounded_fewer {U C} (may fewer : U -> U -> Prop) (given : list U -> C -> Z) s :
  (forall u v, fewer u v -> may u v) -> bounded may given s -> bounded fewer given s.
Proof. intros H B t o [before u v after F]. apply B. constructor. now apply H. Qed.

(** ** Rounding inside the bound: exact moves within [a], rounding within [r] of it *)

Lemma minkowski {C} (cs : list (C * Q)) (d e : C -> R) a r : 0 < a -> 0 < r ->
  moved l2 cs d <= a ^ 2 -> moved l2 cs e <= r ^ 2 -> moved l2 cs (fun c => d c + e c) <= (a + r) ^ 2.
Proof.
  intros Ha Hr Hd He.
  assert (S : moved l2 cs (fun c => d c + e c) <= (1 + r / a) * moved l2 cs d + (1 + a / r) * moved l2 cs e).
  { clear Hd He. induction cs as [|[c w] cs IH]; cbn [moved cost]; [lra|].
    set (x := d c / Q2R w). set (y := e c / Q2R w).
    replace ((d c + e c) / Q2R w) with (x + y) by (unfold x, y, Rdiv; ring).
    assert (E : (1 + r / a) * x ^ 2 + (1 + a / r) * y ^ 2 - (x + y) ^ 2 = (r * x - a * y) ^ 2 / (a * r)) by (field; lra).
    assert (0 <= (r * x - a * y) ^ 2 / (a * r)).
    { apply Rmult_le_pos; [apply pow2_ge_0|]. left. apply Rinv_0_lt_compat. nra. }
    lra. }
  assert (P : 0 < r / a /\ 0 < a / r) by (split; apply Rdiv_lt_0_compat; lra).
  assert (E : (1 + r / a) * a ^ 2 + (1 + a / r) * r ^ 2 = (a + r) ^ 2) by (field; lra).
  nra.
Qed.

Lemma triangle {C} (cs : list (C * Q)) (d e : C -> R) a r : positive_weights cs ->
  moved l1 cs d <= a -> moved l1 cs e <= r -> moved l1 cs (fun c => d c + e c) <= a + r.
Proof.
  intros P Hd He.
  assert (S : moved l1 cs (fun c => d c + e c) <= moved l1 cs d + moved l1 cs e); [|lra].
  clear Hd He. induction P as [|[c w] cs H P IH]; simpl in *; [lra|].
  assert (Rabs (d c + e c) / Q2R w <= Rabs (d c) / Q2R w + Rabs (e c) / Q2R w); [|lra].
  unfold Rdiv. rewrite <- Rmult_plus_distr_r. apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|].
  apply Rabs_triang.
Qed.

(** ** [root_above] of [queries/query.py]: a fraction that is not below the square root *)

Definition root_above (q : Q) : Q := Qmake (Z.sqrt (Qnum q * 10 ^ 24 / Zpos (Qden q)) + 1) (10 ^ 12).

Lemma root_above_square q : 0 <= Q2R q -> Q2R q <= Q2R (root_above q) ^ 2.
Proof.
  intros H. destruct q as [a b]. unfold Q2R, root_above in *. cbn [Qnum Qden] in *.
  assert (Hb : 0 < IZR (Zpos b)) by (apply IZR_lt; lia).
  assert (Ha : (0 <= a)%Z).
  { apply le_IZR. apply Rnot_lt_le. intros C. assert (0 < / IZR (Zpos b)) by now apply Rinv_0_lt_compat. nra. }
  set (m := (a * 10 ^ 24 / Zpos b)%Z). assert (Hm : (0 <= m)%Z) by (apply Z.div_pos; lia).
  assert (M : (a * 10 ^ 24 < (m + 1) * Zpos b)%Z).
  { pose proof (Z.mul_succ_div_gt (a * 10 ^ 24) (Zpos b) ltac:(lia)). fold m in H0. lia. }
  pose proof (Z.sqrt_spec m Hm) as [_ S].
  set (s := Z.sqrt m) in *. assert (S' : (m + 1 <= (s + 1) * (s + 1))%Z) by lia.
  assert (T : (a * 10 ^ 24 <= (s + 1) * (s + 1) * Zpos b)%Z) by nia.
  apply IZR_le in T. rewrite !mult_IZR in T. replace (IZR (10 ^ 24)) with (10 ^ 24)%R in T by (simpl; lra).
  change (Zpos (10 ^ 12)) with 1000000000000%Z.
  replace ((IZR (s + 1) * / 1000000000000) ^ 2) with (IZR (s + 1) * IZR (s + 1) / 10 ^ 24) by (simpl; field).
  apply Rmult_le_reg_r with (IZR (Zpos b) * 10 ^ 24); [simpl; nra|].
  replace (IZR a * / IZR (Zpos b) * (IZR (Zpos b) * 10 ^ 24)) with (IZR a * 10 ^ 24) by (field; lra).
  replace (IZR (s + 1) * IZR (s + 1) / 10 ^ 24 * (IZR (Zpos b) * 10 ^ 24))
    with (IZR (s + 1) * IZR (s + 1) * IZR (Zpos b)) by (field; simpl; lra).
  exact T.
Qed.

Lemma root_above_pos q : 0 <= Q2R q -> 0 < Q2R (root_above q).
Proof.
  intros _. unfold root_above, Q2R. cbn [Qnum Qden].
  apply Rmult_lt_0_compat; [apply IZR_lt; match goal with |- context [Z.sqrt ?m] => pose proof (Z.sqrt_nonneg m) end; lia|].
  apply Rinv_0_lt_compat, IZR_lt. lia.
Qed.

(** ** Cells: a unit is in one of them or in none *)

(** What a unit in [cell] adds at cell [j]. *)
Definition in_cell (cell : option nat) (j : nat) (x : Z) : Z :=
  match cell with Some i => if Nat.eqb i j then x else 0%Z | None => 0%Z end.

Section Cells.
Context {P : Type} (n : norm).

(** Sums of the first part in all cells, then of the second, and so on. *)
Definition by_part (parts : list (P * Q)) (cells : nat) : list ((nat * P) * Q) :=
  flat_map (fun p => map (fun j => ((j, fst p), snd p)) (seq 0 cells)) parts.

(** All sums of the first cell, then of the second, and so on. *)
Definition by_cell (parts : list (P * Q)) (cells : nat) : list ((nat * P) * Q) :=
  flat_map (fun j => map (fun p => ((j, fst p), snd p)) parts) (seq 0 cells).

(** How far all cells move together: one cell, or two, or none. *)
Definition cell_change (parts : list (P * Q)) (before after : option nat) (x y : P -> Z) : R :=
  match before, after with
  | Some i, Some j =>
      if Nat.eqb i j then moved n parts (fun p => IZR (x p - y p))
      else moved n parts (fun p => IZR (x p)) + moved n parts (fun p => IZR (y p))
  | Some _, None => moved n parts (fun p => IZR (x p))
  | None, Some _ => moved n parts (fun p => IZR (y p))
  | None, None => 0
  end.

Definition cell_difference (before after : option nat) (x y : P -> Z) (c : nat * P) : R :=
  IZR (in_cell before (fst c) (x (snd c)) - in_cell after (fst c) (y (snd c))).

Fixpoint total (f : nat -> R) (js : list nat) : R := match js with [] => 0 | j :: r => f j + total f r end.

Lemma total_hot i y js : NoDup js -> 0 <= y -> total (fun j => if Nat.eqb i j then y else 0) js <= y.
Proof.
  intros N Hy. assert (Z : forall r, ~ In i r -> total (fun j => if Nat.eqb i j then y else 0) r = 0).
  { induction r; simpl; intros; [lra|]. destruct (Nat.eqb_spec i a); [exfalso; auto|]. rewrite IHr; auto. lra. }
  induction N; simpl; [lra|]. destruct (Nat.eqb_spec i x); [subst; rewrite Z; auto; lra|lra].
Qed.

Lemma total_le f g js : (forall j, f j <= g j) -> total f js <= total g js.
Proof. intros H; induction js; simpl; [lra|]. specialize (H a). lra. Qed.

Lemma total_plus f g js : total (fun j => f j + g j) js = total f js + total g js.
Proof. induction js; simpl; [|rewrite IHjs]; ring. Qed.

Lemma total_0 js : total (fun _ => 0) js = 0.
Proof. induction js; simpl; lra. Qed.

Definition one_change (before after : option nat) (x y : Z) (w : Q) : R :=
  match before, after with
  | Some i, Some j => if Nat.eqb i j then cost n (IZR (x - y)) w else cost n (IZR x) w + cost n (IZR y) w
  | Some _, None => cost n (IZR x) w
  | None, Some _ => cost n (IZR y) w
  | None, None => 0
  end.

Lemma one_change_total before after x y w js : NoDup js -> 0 < Q2R w ->
  total (fun j => cost n (IZR (in_cell before j x - in_cell after j y)) w) js <= one_change before after x y w.
Proof.
  intros N W. assert (Px := cost_nonneg n (IZR x) w W). assert (Py := cost_nonneg n (IZR y) w W).
  assert (Pd := cost_nonneg n (IZR (x - y)) w W).
  destruct before as [i|], after as [k|]; unfold one_change, in_cell.
  - destruct (Nat.eqb_spec i k).
    + subst k. eapply Rle_trans; [|apply (total_hot i _ js N Pd)]. apply total_le. intros j.
      destruct (Nat.eqb i j); [lra|]. rewrite Z.sub_0_r, cost_0. lra.
    + eapply Rle_trans; [|apply Rplus_le_compat; [apply (total_hot i _ js N Px)|apply (total_hot k _ js N Py)]].
      rewrite <- total_plus. apply total_le. intros j.
      destruct (Nat.eqb_spec i j), (Nat.eqb_spec k j); try (subst; congruence).
      * rewrite Z.sub_0_r. lra.
      * rewrite Z.sub_0_l, opp_IZR, cost_opp. lra.
      * rewrite Z.sub_0_r, cost_0. lra.
  - eapply Rle_trans; [|apply (total_hot i _ js N Px)]. apply total_le. intros j.
    destruct (Nat.eqb i j); rewrite Z.sub_0_r; [lra|]. rewrite cost_0. lra.
  - eapply Rle_trans; [|apply (total_hot k _ js N Py)]. apply total_le. intros j.
    destruct (Nat.eqb k j); [rewrite Z.sub_0_l, opp_IZR, cost_opp; lra|]. rewrite Z.sub_0_r, cost_0. lra.
  - rewrite Z.sub_0_r, cost_0, total_0. lra.
Qed.

Lemma moved_cells_of_part (p : P) (w : Q) d js :
  moved n (map (fun j => ((j, p), w)) js) d = total (fun j => cost n (d (j, p)) w) js.
Proof. induction js; simpl; [|rewrite IHjs]; reflexivity. Qed.

Theorem by_part_moves parts cells before after x y : positive_weights parts ->
  moved n (by_part parts cells) (cell_difference before after x y) <= cell_change parts before after x y.
Proof.
  intros H. unfold by_part. induction H as [|[p w] rest W H IH]; cbn [flat_map].
  - unfold cell_change. simpl. destruct before as [i|], after as [k|]; try (destruct (Nat.eqb i k)); lra.
  - rewrite moved_app. cbn [fst snd] in *. rewrite moved_cells_of_part.
    assert (T := one_change_total before after (x p) (y p) w (seq 0 cells) (seq_NoDup _ _) W).
    unfold cell_difference at 1. cbn [fst snd].
    revert IH T. unfold cell_change, one_change. cbn [moved].
    destruct before as [i|], after as [k|]; try (destruct (Nat.eqb i k)); lra.
Qed.

Lemma by_cell_by_part parts cells d : moved n (by_cell parts cells) d = moved n (by_part parts cells) d.
Proof.
  unfold by_cell, by_part. generalize (seq 0 cells) as js. intros js.
  assert (E : forall ps, moved n (flat_map (fun p => map (fun j => ((j, fst p), snd p)) []) ps) d = 0)
    by (induction ps; simpl; auto).
  induction js as [|j js IH]; cbn [flat_map]; [now rewrite E|].
  rewrite moved_app, IH. clear. induction parts as [|[p w] rest IH]; simpl in *; [lra|].
  rewrite !moved_app. lra.
Qed.

Theorem by_cell_moves parts cells before after x y : positive_weights parts ->
  moved n (by_cell parts cells) (cell_difference before after x y) <= cell_change parts before after x y.
Proof. rewrite by_cell_by_part. apply by_part_moves. Qed.

(** All that a query made of cells must show: a unit that stays, and half for one that comes or goes. *)
Theorem cell_change_within parts b before after x y : 0 <= b ->
  moved n parts (fun p => IZR (x p - y p)) <= b ->
  (before <> after -> moved n parts (fun p => IZR (x p)) <= b / 2 /\ moved n parts (fun p => IZR (y p)) <= b / 2) ->
  cell_change parts before after x y <= b.
Proof.
  intros B S M. unfold cell_change. destruct before as [i|], after as [k|].
  - destruct (Nat.eqb_spec i k); [exact S|]. destruct M; [congruence|lra].
  - destruct M; [congruence|lra].
  - destruct M; [congruence|lra].
  - exact B.
Qed.
End Cells.

(** Turn weights and bounds into numbers. *)
Ltac numbers := repeat match goal with |- context [Q2R ?q] =>
  let v := eval vm_compute in q in change (Q2R q) with (IZR (Qnum v) * / IZR (Zpos (Qden v))); cbn [Qnum Qden] end.
