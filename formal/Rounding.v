(** * Deficits, rounding down and limits

    What squares, [Shift] and [Clip] of a description do to a difference of two units. *)

From Coq Require Import Reals QArith Qreals ZArith List Lia Lra Psatz.
From dpcausal Require Import Frame.
Import ListNotations.

(** ** Rounding down *)
Section Rounding.
Open Scope Z_scope.

(** A division rounded down moves a difference by less than one tick. *)
Theorem floor_moves a b m : 0 < m -> a - b - m < m * (a / m - b / m) < a - b + m.
Proof.
  intros M. pose proof (Z.div_mod a m ltac:(lia)). pose proof (Z.div_mod b m ltac:(lia)).
  pose proof (Z.mod_pos_bound a m M). pose proof (Z.mod_pos_bound b m M). nia.
Qed.

(** In whole numbers: a difference from [low] to [high] becomes one from [low / m] to [high / m], rounded outward. *)
Theorem floor_range a b m low high : 0 < m -> low <= a - b <= high -> low / m <= a / m - b / m <= - (- high / m).
Proof.
  intros M [L H]. pose proof (Z.div_mod a m ltac:(lia)). pose proof (Z.div_mod b m ltac:(lia)).
  pose proof (Z.mod_pos_bound a m M). pose proof (Z.mod_pos_bound b m M).
  pose proof (Z.div_mod low m ltac:(lia)). pose proof (Z.mod_pos_bound low m M).
  pose proof (Z.div_mod (- high) m ltac:(lia)). pose proof (Z.mod_pos_bound (- high) m M).
  split; nia.
Qed.

(** Both ends are attained: no narrower range holds for all numbers. *)
Theorem floor_range_attained d m : 0 < m ->
  (exists a b, a - b = d /\ a / m - b / m = d / m) /\ (exists a b, a - b = d /\ a / m - b / m = - (- d / m)).
Proof.
  intros M. split.
  - exists d, 0. rewrite Z.div_0_l by lia. lia.
  - exists 0, (- d). rewrite Z.div_0_l by lia. lia.
Qed.

Fixpoint sum (zs : list Z) : Z := match zs with [] => 0 | z :: rest => z + sum rest end.

(** Sums of [length zs] numbers, each rounded down: the rounding is a whole number of ticks from 0 to one less than the
    length, if the sum itself is rounded too. *)
Theorem sum_of_floors zs m : 0 < m -> zs <> [] ->
  0 <= sum zs / m - sum (map (fun z => z / m) zs) <= Z.of_nat (length zs) - 1.
Proof.
  intros M N. assert (S : sum zs - Z.of_nat (length zs) * (m - 1) <= m * sum (map (fun z => z / m) zs) <= sum zs).
  { clear N. induction zs as [|z zs IH]; [cbn; lia|]. cbn [map sum length]. rewrite Nat2Z.inj_succ.
    pose proof (Z.div_mod z m ltac:(lia)). pose proof (Z.mod_pos_bound z m M). nia. }
  assert (L : 1 <= Z.of_nat (length zs)) by (destruct zs; [congruence|cbn [length]; lia]).
  pose proof (Z.div_mod (sum zs) m ltac:(lia)). pose proof (Z.mod_pos_bound (sum zs) m M). split; nia.
Qed.

(** A number rounded once moves with the sum by less than a tick; numbers rounded each by less than a tick each. *)
Theorem sum_of_floors_moves a b m : 0 < m -> length a = length b -> a <> [] ->
  Z.abs (m * (sum (map (fun z => z / m) a) - sum (map (fun z => z / m) b)) - (sum a - sum b))
  <= Z.of_nat (length a) * (m - 1).
Proof.
  intros M E N. assert (S : forall zs, - (Z.of_nat (length zs) * (m - 1)) <= m * sum (map (fun z => z / m) zs) - sum zs <= 0).
  { induction zs as [|z zs IH]; [cbn; lia|]. cbn [map sum length]. rewrite Nat2Z.inj_succ.
    pose proof (Z.div_mod z m ltac:(lia)). pose proof (Z.mod_pos_bound z m M). nia. }
  pose proof (S a). pose proof (S b). rewrite <- E in *. lia.
Qed.

(** ** Limits *)

Definition clip (low high z : Z) : Z := Z.max low (Z.min high z).

(** A limit keeps the direction of a difference and never lengthens it. *)
Theorem clip_contracts low high a b : b <= a -> 0 <= clip low high a - clip low high b <= a - b.
Proof. unfold clip. lia. Qed.

Theorem clip_range low high a b l h : l <= a - b <= h ->
  Z.min 0 l <= clip low high a - clip low high b <= Z.max 0 h.
Proof. unfold clip. lia. Qed.

(** ** Products: a change in terms of changes and sums; squares factor *)

Theorem product_change a b c d : 2 * (a * b - c * d) = (a - c) * (b + d) + (a + c) * (b - d).
Proof. ring. Qed.

End Rounding.

(** ** Deficits *)
Section Deficits.
Open Scope R_scope.

Theorem deficit_change u v : (1 - u ^ 2) - (1 - v ^ 2) = (v - u) * (v + u).
Proof. ring. Qed.

(** With x the total's move as a share of the largest, a deficit moves by at most 4x(1 - x): nothing where the total
    moves all the way. *)
Theorem deficit_with_total u v : -1 <= u <= 1 -> -1 <= v <= 1 ->
  let x := Rabs (u - v) / 2 in 0 <= x <= 1 /\ Rabs ((1 - u ^ 2) - (1 - v ^ 2)) <= 4 * x * (1 - x).
Proof.
  intros U V x. assert (P := Rabs_pos (u - v)).
  assert (S : Rabs (v + u) <= 2 - Rabs (u - v)) by (unfold Rabs; destruct (Rcase_abs (v + u)), (Rcase_abs (u - v)); lra).
  split; [unfold x; pose proof (Rabs_pos (v + u)); lra|].
  rewrite deficit_change, Rabs_mult, (Rabs_minus_sym v u). unfold x.
  replace (4 * (Rabs (u - v) / 2) * (1 - Rabs (u - v) / 2)) with (Rabs (u - v) * (2 - Rabs (u - v))) by field.
  now apply Rmult_le_compat_l.
Qed.

Theorem deficit_alone u v : -1 <= u <= 1 -> -1 <= v <= 1 -> Rabs ((1 - u ^ 2) - (1 - v ^ 2)) <= 1.
Proof.
  intros U V. destruct (deficit_with_total u v U V) as [X H]. set (x := Rabs (u - v) / 2) in *.
  eapply Rle_trans; [exact H|]. pose proof (pow2_ge_0 (2 * x - 1)). lra.
Qed.

(** Hence a deficit costs nothing beside its total, in units of the total's largest move: with at least twice the
    total's weight in the l1 norm, with at least the total's weight in the l2 norm. *)
Theorem deficit_free_l1 u v w : -1 <= u <= 1 -> -1 <= v <= 1 -> 2 <= w ->
  Rabs (u - v) / 2 + Rabs ((1 - u ^ 2) - (1 - v ^ 2)) / (2 * w) <= 1.
Proof.
  intros U V W. destruct (deficit_with_total u v U V) as [X H]. cbn zeta in *. set (x := Rabs (u - v) / 2) in *.
  set (d := Rabs (1 - u ^ 2 - (1 - v ^ 2))) in *. assert (D : 0 <= d) by apply Rabs_pos.
  assert (d / (2 * w) <= d / 4).
  { unfold Rdiv. apply Rmult_le_compat_l; [exact D|]. apply Rinv_le_contravar; lra. }
  pose proof (pow2_ge_0 (1 - x)). lra.
Qed.

Theorem deficit_free_l2 u v w : -1 <= u <= 1 -> -1 <= v <= 1 -> 1 <= w ->
  (Rabs (u - v) / 2) ^ 2 + (Rabs ((1 - u ^ 2) - (1 - v ^ 2)) / (2 * w)) ^ 2 <= 1.
Proof.
  intros U V W. destruct (deficit_with_total u v U V) as [X H]. cbn zeta in *. set (x := Rabs (u - v) / 2) in *.
  set (d := Rabs (1 - u ^ 2 - (1 - v ^ 2))) in *. assert (D : 0 <= d) by apply Rabs_pos.
  assert (I : / (2 * w) <= / 2) by (apply Rinv_le_contravar; lra).
  assert (J : 0 < / (2 * w)) by (apply Rinv_0_lt_compat; lra).
  assert (0 <= d / (2 * w) <= 2 * x * (1 - x)) by (unfold Rdiv; nra).
  assert ((d / (2 * w)) ^ 2 <= (2 * x * (1 - x)) ^ 2) by (apply pow_incr; lra).
  assert (0 <= (1 - x) * (x * (1 - 2 * x) ^ 2 + 1)).
  { apply Rmult_le_pos; [lra|]. assert (0 <= x * (1 - 2 * x) ^ 2) by (apply Rmult_le_pos; [lra|apply pow2_ge_0]). lra. }
  nra.
Qed.

(** A unit that enters or leaves: the same, for the number itself. *)
Theorem deficit_enters u : -1 <= u <= 1 ->
  Rabs u + (1 - u ^ 2) / 2 <= 1 /\ u ^ 2 + (1 - u ^ 2) ^ 2 <= 1.
Proof.
  intros U. assert (E : u ^ 2 = Rabs u ^ 2) by now rewrite pow2_abs.
  assert (A : 0 <= Rabs u <= 1) by (split; [apply Rabs_pos|apply Rabs_le; lra]).
  rewrite E. set (a := Rabs u) in *. split; [nra|]. assert (0 <= a ^ 2 <= 1) by nra. nra.
Qed.
End Deficits.
