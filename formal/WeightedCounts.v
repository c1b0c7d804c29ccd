(** * Weighted counts

    A unit adds its weight to one count, and the square to one sum of its arm. *)

From Coq Require Import Reals QArith Qreals ZArith List Lia Lra Psatz Bool.
From dpcausal Require Import Grid Frame Moments Counts.
Import ListNotations.
Open Scope R_scope.

Record weighted := Weighted { in_arm : option nat; in_bin : nat; weight : Z }.
Definition weighable (u : weighted) : Prop := (0 <= weight u <= G)%Z.
Definition weight_square (w : Z) : Z := (w * w / G)%Z.

Definition weighted_coordinate : Type := (nat * counted) + (nat * counted).
Definition bin_of (each : nat) (u : weighted) : option nat := option_map (fun a => (a * each + in_bin u)%nat) (in_arm u).
Definition weighted_part (each : nat) (u : weighted) (c : weighted_coordinate) : Z :=
  match c with
  | inl (j, _) => in_cell (bin_of each u) j (weight u)
  | inr (j, _) => in_cell (in_arm u) j (weight_square (weight u))
  end.

Definition weighted_counts_sensitivity (p : protects) (each : nat) (n : norm) : sensitivity weighted_coordinate :=
  Sensitivity n
    (map (fun c => (inl (fst c), snd c)) (by_cell [(Count, Zq G)] (2 * each))
      ++ map (fun c => (inr (fst c), snd c)) (by_cell [(Count, Zq (8 * G))] 2))
    (match p, n with
     | record, l1 => 2 + (2 # 8) | record, l2 => root_above (2 + (2 # 64))
     | _, l1 => 2 | _, l2 => root_above 2 end)%Q.

Definition weighted_may (p : protects) (u v : weighted) : Prop :=
  weighable u /\ weighable v /\ (p <> record -> in_arm u = in_arm v).

Lemma weight_square_spec w : (0 <= w <= G)%Z ->
  (0 <= weight_square w <= w /\ G * weight_square w <= w * w < G * weight_square w + G)%Z.
Proof.
  unfold weight_square, grid. intros H.
  assert (D := Z_div_mod_eq_full (w * w) 1048576). assert (R := Z.mod_pos_bound (w * w) 1048576 ltac:(lia)).
  assert (P := Z.div_pos (w * w) 1048576 ltac:(nia) ltac:(lia)). nia.
Qed.

(** Both weights' counts and the squares of one arm. *)
Lemma weight_less_square g x y : (0 < g -> 0 <= x <= g -> g * y <= x * x < g * y + g -> y <= x -> 8 * x - y <= 7 * g)%Z.
Proof.
  intros P X H Y. destruct (Z.eq_dec x g) as [E|E].
  - subst x. assert (g <= y + 0)%Z by nia. lia.
  - assert (A : (1 * g <= (g - x) * (7 * g - x))%Z) by (apply Z.mul_le_mono_nonneg; lia).
    assert (B : (g * (8 * x - y) < g * (7 * g + 1))%Z) by nia.
    apply Z.mul_lt_mono_pos_l in B; lia.
Qed.

Lemma same_arm_l1 w v : (0 <= w <= G -> 0 <= v <= G ->
  8 * w + 8 * v + Z.abs (weight_square w - weight_square v) <= 16 * G)%Z.
Proof.
  intros Hw Hv. destruct (weight_square_spec w Hw) as [A B], (weight_square_spec v Hv) as [C D].
  assert (P : (0 < G)%Z) by reflexivity.
  assert (K1 := weight_less_square G w _ P Hw B ltac:(lia)). assert (K2 := weight_less_square G v _ P Hv D ltac:(lia)). lia.
Qed.

Lemma square_difference g d e : (1 <= g -> 1 <= d <= g * g -> 0 <= e -> g * e <= d + g -> e * e <= 64 * d)%Z.
Proof.
  intros P D E H.
  assert (A : ((g * e) * (g * e) <= (d + g) * (d + g))%Z) by (apply Z.mul_le_mono_nonneg; nia).
  assert (B : (d * d <= g * g * d)%Z) by nia. assert (C : (g * g * 1 <= g * g * d)%Z) by nia.
  assert (F : (2 * (d * g) <= 2 * (g * g * d))%Z) by nia.
  assert (I : ((g * g) * (e * e) <= (g * g) * (64 * d))%Z) by nia.
  apply Z.mul_le_mono_pos_l in I; nia.
Qed.

Lemma same_arm_l2 w v : (0 <= w <= G -> 0 <= v <= G ->
  64 * (w * w) + 64 * (v * v) + (weight_square w - weight_square v) * (weight_square w - weight_square v) <= 128 * (G * G))%Z.
Proof.
  assert (K : forall w v, (0 <= w <= G -> 0 <= v <= w ->
    64 * (w * w) + 64 * (v * v) + (weight_square w - weight_square v) * (weight_square w - weight_square v) <= 128 * (G * G))%Z).
  { intros a b Ha Hb. destruct (weight_square_spec a Ha) as [A B], (weight_square_spec b ltac:(lia)) as [C D].
    assert (P : (1 <= G)%Z) by (unfold grid; lia). generalize dependent (weight_square a).
    generalize dependent (weight_square b). generalize dependent G. intros g Ha P t C D s A B.
    assert (Sa : (a * a <= g * g)%Z) by nia. assert (Sb : (b * b <= a * a)%Z) by nia.
    destruct (Z.eq_dec a b) as [E|E].
    { subst b. assert (s = t) by nia. subst t. lia. }
    assert (L : (1 <= a * a - b * b)%Z) by nia.
    assert (T : (g * t < g * s + g)%Z) by lia. assert (T' : (t < s + 1)%Z) by nia.
    assert (F := square_difference g (a * a - b * b) (s - t) P ltac:(nia) ltac:(lia) ltac:(nia)). nia. }
  intros Hw Hv. destruct (Z.le_gt_cases v w) as [L|L]; [apply K; lia|].
  specialize (K v w ltac:(lia) ltac:(lia)).
  replace ((weight_square w - weight_square v) * (weight_square w - weight_square v))%Z
    with ((weight_square v - weight_square w) * (weight_square v - weight_square w))%Z by ring. lia.
Qed.

Theorem weighted_counts p each n :
  bounded (weighted_may p) (answer (weighted_part each)) (weighted_counts_sensitivity p each n).
Proof.
  apply bounded_by_units. intros u v (Hu & Hv & S). unfold within, weighted_counts_sensitivity.
  cbn [in_norm coordinates bound]. rewrite moved_app, !moved_map.
  assert (A := by_cell_moves n [(Count, Zq G)] (2 * each) (bin_of each u) (bin_of each v)
    (fun _ => weight u) (fun _ => weight v) ltac:(weights)).
  assert (B := by_cell_moves n [(Count, Zq (8 * G))] 2 (in_arm u) (in_arm v)
    (fun _ => weight_square (weight u)) (fun _ => weight_square (weight v)) ltac:(weights)).
  eapply Rle_trans; [apply Rplus_le_compat; [eapply Rle_trans; [|exact A]|eapply Rle_trans; [|exact B]];
    right; apply moved_ext; intros [j q]; reflexivity|]. clear A B.
  assert (L1 := same_arm_l1 _ _ Hu Hv). assert (L2 := same_arm_l2 _ _ Hu Hv).
  destruct (weight_square_spec _ Hu) as [A _], (weight_square_spec _ Hv) as [B _].
  unfold weighable in Hu, Hv. unfold bin_of, cell_change.
  set (w := weight u) in *. set (w' := weight v) in *. set (s := weight_square w) in *. set (s' := weight_square w') in *.
  assert (R1 : Rabs (IZR (w - w')) <= IZR w + IZR w').
  { rewrite <- abs_IZR, <- plus_IZR. apply IZR_le. lia. }
  assert (R2 : IZR (w - w') ^ 2 <= IZR w ^ 2 + IZR w' ^ 2).
  { rewrite minus_IZR. assert (0 <= IZR w /\ 0 <= IZR w') by (split; apply IZR_le; lia). nra. }
  assert (R3 : 8 * IZR w + 8 * IZR w' + Rabs (IZR (s - s')) <= 16 * IZR G).
  { rewrite <- abs_IZR, <- !mult_IZR, <- !plus_IZR. apply IZR_le. exact L1. }
  assert (R4 : 64 * IZR w ^ 2 + 64 * IZR w' ^ 2 + IZR (s - s') ^ 2 <= 128 * IZR G ^ 2).
  { apply IZR_le in L2. rewrite !plus_IZR, !mult_IZR in L2. lra. }
  assert (P1 : 0 <= IZR w <= IZR G) by (split; apply IZR_le; lia).
  assert (P2 : 0 <= IZR w' <= IZR G) by (split; apply IZR_le; lia).
  assert (P3 : 0 <= IZR s <= IZR G) by (split; apply IZR_le; lia).
  assert (P4 : 0 <= IZR s' <= IZR G) by (split; apply IZR_le; lia).
  assert (Q : p = record \/ in_arm u = in_arm v) by (destruct p; auto; right; apply S; congruence).
  clear S L1 L2 A B.
  destruct (in_arm u) as [i|], (in_arm v) as [k|]; cbn [option_map];
    try (destruct (Nat.eqb_spec i k) as [E|E]);
    try match goal with |- context [Nat.eqb ?a ?b] => destruct (Nat.eqb_spec a b) end;
    destruct Q as [Q|Q]; try congruence; try subst p; destruct n; try destruct p; cbn [moved cost most]; rewrite ?Q2R_Zq, ?mult_IZR;
    rewrite ?(Rabs_pos_eq (IZR w)), ?(Rabs_pos_eq (IZR w')), ?(Rabs_pos_eq (IZR s)), ?(Rabs_pos_eq (IZR s')) by lra;
    numbers; unfold grid in *; first [lra | nra].
Qed.
