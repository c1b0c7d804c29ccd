(** * How far a minimum moves

    [docs/proofs/logistic.md] and [effect_weights.md]: a strongly convex objective of several coefficients. Vectors have
    coordinates 0 to n - 1. *)

From Coq Require Import Reals List Lra Psatz.
Import ListNotations.
Open Scope R_scope.

Fixpoint dot (n : nat) (x y : nat -> R) : R := match n with O => 0 | S m => x m * y m + dot m x y end.

Lemma dot_split n x y t : 0 < t -> - dot n x y <= t / 2 * dot n y y + / (2 * t) * dot n x x.
Proof.
  intros T. assert (I := Rinv_0_lt_compat (2 * t) ltac:(lra)). induction n as [|n IH]; cbn [dot]; [lra|].
  assert (E : t / 2 * (y n * y n) + / (2 * t) * (x n * x n) + x n * y n = / (2 * t) * (x n + t * y n) ^ 2) by (field; lra).
  assert (0 <= / (2 * t) * (x n + t * y n) ^ 2) by (apply Rmult_le_pos; [lra|apply pow2_ge_0]). lra.
Qed.

(** Let [f] be the gradient of an objective with ridge [penalty], so that it is strongly monotone, and let it be 0 at
    [a]. Where it is no longer than [length], one is no farther than [length / penalty] from [a]. *)
Theorem minimum_moves n (f : (nat -> R) -> nat -> R) (penalty length : R) (a b : nat -> R) :
  0 < penalty ->
  (forall x y, penalty * dot n (fun i => x i - y i) (fun i => x i - y i)
    <= dot n (fun i => f x i - f y i) (fun i => x i - y i)) ->
  (forall i, f a i = 0) -> dot n (f b) (f b) <= length ^ 2 ->
  dot n (fun i => a i - b i) (fun i => a i - b i) <= (length / penalty) ^ 2.
Proof.
  intros P M Z L. specialize (M a b).
  set (d := fun i => a i - b i) in *.
  assert (E : dot n (fun i => f a i - f b i) d = - dot n (f b) d).
  { clear M L. induction n as [|n IH]; cbn [dot]; [lra|]. rewrite IH, Z. lra. }
  rewrite E in M. assert (S := dot_split n (f b) d penalty P).
  assert (I := Rinv_0_lt_compat (2 * penalty) ltac:(lra)).
  assert (K : penalty / 2 * dot n d d <= / (2 * penalty) * length ^ 2) by nra.
  replace ((length / penalty) ^ 2) with (2 / penalty * (/ (2 * penalty) * length ^ 2)) by (field; lra).
  replace (dot n d d) with (2 / penalty * (penalty / 2 * dot n d d)) by (field; lra).
  apply Rmult_le_compat_l; [|exact K]. left. apply Rdiv_lt_0_compat; lra.
Qed.
