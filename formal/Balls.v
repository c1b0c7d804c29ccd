(** * Blocks of features in a Euclidean ball

    A vector of any length is a list of numbers. What two vectors of length at most r differ by: in themselves by at most
    2r, in their products of two (all entries of the matrix) by at most the root of 2 times r squared. All lengths are
    squared, so no root is needed. *)

From Coq Require Import Reals List Lra Psatz.
Import ListNotations.
Open Scope R_scope.

Fixpoint inner (x y : list R) : R := match x, y with a :: x', b :: y' => a * b + inner x' y' | _, _ => 0 end.
Definition square (x : list R) : R := inner x x.
Definition scale (a : R) (x : list R) : list R := map (Rmult a) x.
Fixpoint minus (x y : list R) : list R := match x, y with a :: x', b :: y' => a - b :: minus x' y' | _, _ => [] end.

(** All products of an entry of x and one of y, row by row. *)
Fixpoint outer (x y : list R) : list R := match x with [] => [] | a :: x' => scale a y ++ outer x' y end.

Lemma square_nonneg x : 0 <= square x.
Proof. unfold square. induction x; cbn [inner]; [lra|nra]. Qed.

Lemma inner_scale a b x y : inner (scale a x) (scale b y) = a * b * inner x y.
Proof. revert y. induction x; intros [|c y]; cbn; try ring. unfold scale in IHx. rewrite IHx. ring. Qed.

Lemma inner_app a b c d : length a = length c -> inner (a ++ b) (c ++ d) = inner a c + inner b d.
Proof. revert c. induction a; intros [|e c] L; try discriminate; cbn; [ring|]. rewrite IHa by (cbn in L; congruence). ring. Qed.

Lemma scale_length a x : length (scale a x) = length x.
Proof. apply map_length. Qed.

(** The matrices of two pairs of vectors have the product of their inner products. *)
Lemma inner_outer a b c d : length b = length d -> length a = length c -> inner (outer a b) (outer c d) = inner a c * inner b d.
Proof.
  intros L. revert c. induction a as [|x a IH]; intros [|y c] M; try discriminate; cbn [outer inner]; [ring|].
  rewrite inner_app by (now rewrite !scale_length). rewrite inner_scale, IH by (cbn in M; congruence). ring.
Qed.

Lemma square_minus x y : length x = length y -> square (minus x y) = square x + square y - 2 * inner x y.
Proof.
  unfold square. revert y. induction x; intros [|b y] L; try discriminate; cbn; [ring|].
  rewrite IHx by (cbn in L; congruence). ring.
Qed.

Lemma outer_length x y : length (outer x y) = (length x * length y)%nat.
Proof. induction x; cbn [outer length]; [reflexivity|]. rewrite app_length, scale_length, IHx. reflexivity. Qed.

(** Cauchy and Schwarz. *)
Theorem inner_bounded x y : inner x y ^ 2 <= square x * square y.
Proof.
  revert y. induction x as [|a x IH]; intros [|b y]; unfold square in *; cbn [inner]; try nra.
  specialize (IH y). pose proof (square_nonneg x) as X. pose proof (square_nonneg y) as Y. unfold square in X, Y.
  set (p := inner x x) in *. set (q := inner y y) in *. set (r := inner x y) in *.
  enough (2 * (a * b) * r <= a ^ 2 * q + b ^ 2 * p) by nra.
  assert (T : 0 <= a ^ 2 * q + b ^ 2 * p) by nra.
  apply Rnot_lt_le. intros C.
  assert ((a * b) ^ 2 * r ^ 2 <= (a * b) ^ 2 * (p * q)) by (apply Rmult_le_compat_l; [apply pow2_ge_0|exact IH]).
  pose proof (pow2_ge_0 (a ^ 2 * q - b ^ 2 * p)).
  assert ((a ^ 2 * q + b ^ 2 * p) ^ 2 < (2 * (a * b) * r) ^ 2) by nra. nra.
Qed.

Lemma inner_below x y r : 0 <= r -> square x <= r ^ 2 -> square y <= r ^ 2 -> - r ^ 2 <= inner x y <= r ^ 2.
Proof.
  intros P X Y. pose proof (inner_bounded x y). pose proof (square_nonneg x). pose proof (square_nonneg y).
  assert (Q : inner x y ^ 2 <= (r ^ 2) ^ 2) by nra. assert (0 <= r ^ 2) by nra. split; nra.
Qed.

(** A block moves by at most 2r. *)
Theorem ball_moves x y r : 0 <= r -> length x = length y -> square x <= r ^ 2 -> square y <= r ^ 2 ->
  square (minus x y) <= (2 * r) ^ 2.
Proof. intros P L X Y. rewrite square_minus by exact L. pose proof (inner_below x y r P X Y). nra. Qed.

(** All products of two features, before and after, with factors from -1 to 1 of equal sign or with none: the two
    matrices have an inner product of at least 0, so their difference is no longer than both together. *)
Theorem ball_products_move x y r : 0 <= r -> length x = length y -> square x <= r ^ 2 -> square y <= r ^ 2 ->
  square (minus (outer x x) (outer y y)) <= 2 * (r ^ 2) ^ 2.
Proof.
  intros P L X Y. rewrite square_minus by (rewrite !outer_length; congruence).
  unfold square at 1 2. rewrite !inner_outer by congruence. fold (square x) (square y).
  pose proof (pow2_ge_0 (inner x y)). pose proof (square_nonneg x). pose proof (square_nonneg y).
  assert (square x * square x <= r ^ 2 * r ^ 2) by nra. assert (square y * square y <= r ^ 2 * r ^ 2) by nra. nra.
Qed.

(** It is attained by vectors at right angles. *)
Theorem ball_products_attained r : 0 <= r ->
  square (minus (outer [r; 0] [r; 0]) (outer [0; r] [0; r])) = 2 * (r ^ 2) ^ 2.
Proof. intros. unfold square. cbn. ring. Qed.

(** Each block with a factor from -1 to 1, such as a sign or an outcome: still within 2r. *)
Theorem ball_moves_with_factors s t x y r : 0 <= r -> -1 <= s <= 1 -> -1 <= t <= 1 -> length x = length y ->
  square x <= r ^ 2 -> square y <= r ^ 2 -> square (minus (scale s x) (scale t y)) <= (2 * r) ^ 2.
Proof.
  intros P S T L X Y. apply ball_moves; [exact P|now rewrite !scale_length|..]; unfold square in *; rewrite inner_scale.
  - pose proof (square_nonneg x) as N. unfold square in N. assert (s * s <= 1) by nra. nra.
  - pose proof (square_nonneg y) as N. unfold square in N. assert (t * t <= 1) by nra. nra.
Qed.

(** The matrices with factors: with any factors within 2 r squared, and with factors of the same sign within the root
    of 2. *)
Theorem ball_products_move_with_factors s t x y r : 0 <= r -> -1 <= s <= 1 -> -1 <= t <= 1 -> length x = length y ->
  square x <= r ^ 2 -> square y <= r ^ 2 ->
  square (minus (scale s (outer x x)) (scale t (outer y y))) <= (if Rle_dec 0 (s * t) then 2 else 4) * (r ^ 2) ^ 2.
Proof.
  intros P S T L X Y. rewrite square_minus by (rewrite !scale_length, !outer_length; congruence).
  unfold square at 1 2. rewrite !inner_scale, !inner_outer by congruence. fold (square x) (square y).
  pose proof (square_nonneg x). pose proof (square_nonneg y).
  assert (A : 0 <= square x * square x <= r ^ 2 * r ^ 2) by nra.
  assert (B : 0 <= square y * square y <= r ^ 2 * r ^ 2) by nra.
  assert (Ss : 0 <= s * s <= 1) by nra. assert (Ts : 0 <= t * t <= 1) by nra.
  assert (C : s * s * (square x * square x) <= r ^ 2 * r ^ 2) by nra.
  assert (D : t * t * (square y * square y) <= r ^ 2 * r ^ 2) by nra.
  destruct (Rle_dec 0 (s * t)) as [E|E].
  - assert (0 <= s * t * (inner x y * inner x y)) by (apply Rmult_le_pos; [exact E|apply Rle_0_sqr]). nra.
  - pose proof (inner_below x y r P X Y) as I.
    assert (K : 0 <= inner x y * inner x y <= r ^ 2 * r ^ 2) by (split; [apply Rle_0_sqr|nra]).
    assert (-1 <= s * t) by nra. assert (- (r ^ 2 * r ^ 2) <= s * t * (inner x y * inner x y)) by nra. nra.
Qed.

(** A block and its products with one more feature, an outcome z from -1 to 1, in one: (x, z) is in the ball of squared
    radius r squared and 1, so its block and matrix obey the same theorems. *)
Theorem ball_with_outcome x z r : square x <= r ^ 2 -> -1 <= z <= 1 -> square (z :: x) <= r ^ 2 + 1.
Proof. intros X Z. unfold square in *. cbn [inner]. nra. Qed.
