(** * Products are largest at the ends of their factors

    A point holds all factors of both units; a factor that both share is there once. What a product changes by is affine
    in each single factor. So its absolute value and its square are convex in each, and so is the weighted norm of all
    changes: over a box it is largest where every factor is at an end. For any number of factors and products. *)

From Coq Require Import Reals QArith Qreals ZArith List Lia Lra Psatz Arith.
From dpcausal Require Import Frame.
Import ListNotations.
Open Scope R_scope.

Definition point := nat -> R.
Definition put (x : point) (i : nat) (t : R) : point := fun j => if Nat.eqb i j then t else x j.

(** Only the values of a point count. *)
Definition proper (f : point -> R) : Prop := forall x y, (forall j, x j = y j) -> f x = f y.

Definition affine_in (i : nat) (f : point -> R) : Prop := forall x, exists a b, forall t, f (put x i t) = a + b * t.
Definition convex_in (i : nat) (f : point -> R) : Prop :=
  forall x s t l, 0 <= l <= 1 -> f (put x i (l * s + (1 - l) * t)) <= l * f (put x i s) + (1 - l) * f (put x i t).

(** ** Affine functions *)

Lemma affine_constant i c : affine_in i (fun _ => c).
Proof. intros x. exists c, 0. intros. ring. Qed.

Lemma affine_factor i j : affine_in i (fun x => x j).
Proof.
  intros x. unfold put. destruct (Nat.eqb i j); [exists 0, 1|exists (x j), 0]; intros; ring.
Qed.

Lemma affine_minus i f g : affine_in i f -> affine_in i g -> affine_in i (fun x => f x - g x).
Proof.
  intros F G x. destruct (F x) as (a & b & A), (G x) as (c & d & B).
  exists (a - c), (b - d). intros t. rewrite A, B. ring.
Qed.

Lemma affine_plus i f g : affine_in i f -> affine_in i g -> affine_in i (fun x => f x + g x).
Proof.
  intros F G x. destruct (F x) as (a & b & A), (G x) as (c & d & B).
  exists (a + c), (b + d). intros t. rewrite A, B. ring.
Qed.

Lemma affine_scale i c f : affine_in i f -> affine_in i (fun x => c * f x).
Proof. intros F x. destruct (F x) as (a & b & A). exists (c * a), (c * b). intros t. rewrite A. ring. Qed.

Fixpoint product (x : point) (factors : list nat) : R := match factors with [] => 1 | j :: r => x j * product x r end.

Lemma product_elsewhere x i t factors : ~ In i factors -> product (put x i t) factors = product x factors.
Proof.
  induction factors as [|j r IH]; cbn [product]; intros N; [reflexivity|].
  rewrite IH by (intros C; apply N; now right). unfold put. destruct (Nat.eqb_spec i j); [|reflexivity].
  exfalso. apply N. now left.
Qed.

Lemma product_ext x y factors : (forall j, In j factors -> x j = y j) -> product x factors = product y factors.
Proof. induction factors as [|j r IH]; cbn [product]; intros H; [reflexivity|]. rewrite IH, H; auto with datatypes. Qed.

(** A product of different factors is affine in each. *)
Theorem product_affine i factors : NoDup factors -> affine_in i (fun x => product x factors).
Proof.
  intros N x. induction N as [|j r H N (a & b & IH)]; cbn [product]; [exists 1, 0; intros; ring|].
  destruct (Nat.eq_dec i j) as [->|D].
  - exists 0, (product x r). intros t. rewrite product_elsewhere by exact H. unfold put. rewrite Nat.eqb_refl. ring.
  - exists (x j * a), (x j * b). intros t. rewrite IH. unfold put. destruct (Nat.eqb_spec i j); [congruence|]. ring.
Qed.

(** ** Convex norms *)

Theorem cost_convex n w i f : 0 < Q2R w -> affine_in i f -> convex_in i (fun x => cost n (f x) w).
Proof.
  intros W F x s t l L. destruct (F x) as (a & b & E). rewrite !E.
  set (p := a + b * s). set (q := a + b * t).
  replace (a + b * (l * s + (1 - l) * t)) with (l * p + (1 - l) * q) by (unfold p, q; ring).
  assert (V : 0 < / Q2R w) by now apply Rinv_0_lt_compat.
  destruct n; cbn [cost]; unfold Rdiv.
  - assert (Rabs (l * p + (1 - l) * q) <= l * Rabs p + (1 - l) * Rabs q); [|nra].
    eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult, (Rabs_pos_eq l), (Rabs_pos_eq (1 - l)) by lra. lra.
  - set (v := / Q2R w) in *.
    assert (E2 : l * (p * v) ^ 2 + (1 - l) * (q * v) ^ 2 - ((l * p + (1 - l) * q) * v) ^ 2
      = l * (1 - l) * ((p - q) * v) ^ 2) by ring.
    assert (0 <= l * (1 - l) * ((p - q) * v) ^ 2); [|lra].
    apply Rmult_le_pos; [nra|apply pow2_ge_0].
Qed.

Theorem moved_convex {C} n (cs : list (C * Q)) i (d : point -> C -> R) : positive_weights cs ->
  Forall (fun c => affine_in i (fun x => d x (fst c))) cs -> convex_in i (fun x => moved n cs (d x)).
Proof.
  intros P A. induction P as [|[c w] cs W P IH]; cbn [moved]; intros x s t l L; [lra|].
  apply Forall_cons_iff in A as [A A']. cbn [fst] in A.
  assert (H := cost_convex n w i (fun x => d x c) W A x s t l L). specialize (IH A' x s t l L). cbn beta in *. lra.
Qed.

(** ** The largest value is at a vertex *)

Lemma convex_end i f x low high : proper f -> convex_in i f -> low <= x i <= high ->
  f x <= f (put x i low) \/ f x <= f (put x i high).
Proof.
  intros R F B. destruct (Req_dec low high) as [E|E].
  - left. right. apply R. intros j. unfold put. destruct (Nat.eqb_spec i j) as [<-|]; [apply Rle_antisym; lra|reflexivity].
  - set (l := (high - x i) / (high - low)).
    assert (K : 0 < / (high - low)) by (apply Rinv_0_lt_compat; lra).
    assert (L : 0 <= l <= 1).
    { unfold l, Rdiv. split; [nra|]. apply Rmult_le_reg_r with (high - low); [lra|].
      rewrite Rmult_assoc, Rinv_l by lra. lra. }
    specialize (F x low high l L).
    assert (M : l * low + (1 - l) * high = x i) by (unfold l; field; lra). rewrite M in F.
    assert (S : f (put x i (x i)) = f x) by (apply R; intros j; unfold put; destruct (Nat.eqb_spec i j); congruence).
    rewrite S in F. destruct (Rle_dec (f x) (f (put x i low))); [now left|right].
    apply Rnot_le_lt in n. apply Rnot_lt_le. intros C.
    set (p := f (put x i low)) in *. set (q := f (put x i high)) in *. set (r := f x) in *. clearbody l p q r.
    destruct (Rle_lt_dec l (/ 2)); nra.
Qed.

(** Factors are moved to the better of their ends one after another; no step makes the value smaller. *)
Theorem vertices (factors : list nat) (low high : point) f x : proper f ->
  (forall i, In i factors -> convex_in i f) -> (forall i, low i <= x i <= high i) ->
  exists y, f x <= f y /\ (forall i, In i factors -> y i = low i \/ y i = high i) /\
    (forall i, ~ In i factors -> y i = x i).
Proof.
  intros R. revert x. induction factors as [|i rest IH]; intros x F B; [exists x; split; [lra|split; [intros i []|reflexivity]]|].
  assert (S : exists t, (t = low i \/ t = high i) /\ f x <= f (put x i t)).
  { destruct (convex_end i f x (low i) (high i) R (F i (or_introl eq_refl)) (B i)); eauto. }
  destruct S as (t & T & S).
  destruct (IH (put x i t)) as (y & Y & E & O); [intros; apply F; now right| |].
  { intros j. unfold put. destruct (Nat.eqb_spec i j); [subst; specialize (B j); destruct T; lra|apply B]. }
  exists y. split; [lra|]. split.
  - intros j [<-|J]; [|now apply E]. destruct (in_dec Nat.eq_dec i rest) as [I|I]; [now apply E|].
    rewrite O by exact I. unfold put. rewrite Nat.eqb_refl. exact T.
  - intros j J. rewrite O by (intros C; apply J; now right). unfold put.
    destruct (Nat.eqb_spec i j); [exfalso; apply J; now left|reflexivity].
Qed.

(** For a query: if no vertex moves the answer further than the bound, then nothing in the box does. *)
Theorem vertices_bound {C} n (cs : list (C * Q)) (d : point -> C -> R) factors low high b : positive_weights cs ->
  (forall c, proper (fun x => d x c)) -> (forall i, In i factors -> Forall (fun c => affine_in i (fun x => d x (fst c))) cs) ->
  (forall y, (forall i, In i factors -> y i = low i \/ y i = high i) ->
    (forall i, ~ In i factors -> low i <= y i <= high i) -> moved n cs (d y) <= b) ->
  forall x, (forall i, low i <= x i <= high i) -> moved n cs (d x) <= b.
Proof.
  intros P R A V x B.
  destruct (vertices factors low high (fun y => moved n cs (d y)) x) as (y & Y & E & O).
  - intros s t H. apply moved_ext. intros c. now apply R.
  - intros i I. apply moved_convex; auto.
  - exact B.
  - eapply Rle_trans; [exact Y|]. apply V; [exact E|]. intros i I. rewrite O by exact I. apply B.
Qed.

(** ** At a vertex only the number of factors that turn counts *)

(** How many of a product's factors turn from the one end to the other, odd or even. *)
Fixpoint odd_turns (turns : nat -> bool) (factors : list nat) : bool :=
  match factors with [] => false | j :: r => xorb (turns j) (odd_turns turns r) end.

Lemma product_turned (x y : point) (turns : nat -> bool) factors : (forall j, In j factors -> y j = if turns j then - x j else x j) ->
  product y factors = if odd_turns turns factors then - product x factors else product x factors.
Proof.
  induction factors as [|j r IH]; cbn [product odd_turns]; intros H; [reflexivity|].
  rewrite IH by (intros; apply H; now right). rewrite (H j) by now left.
  destruct (turns j), (odd_turns turns r); cbn [xorb]; ring.
Qed.

(** A product of factors from -m to m moves by twice the product of the m, or not at all. *)
Theorem product_moves_at_vertex (x y m : point) (turns : nat -> bool) factors :
  (forall j, In j factors -> Rabs (x j) = m j) ->
  (forall j, In j factors -> y j = if turns j then - x j else x j) ->
  Rabs (product x factors - product y factors) = if odd_turns turns factors then 2 * product m factors else 0.
Proof.
  intros M T. rewrite (product_turned x y turns factors T).
  assert (A : Rabs (product x factors) = product m factors).
  { clear T. induction factors as [|j r IH]; cbn [product]; [apply Rabs_R1|].
    rewrite Rabs_mult, IH, M; auto with datatypes. }
  destruct (odd_turns turns factors).
  - replace (product x factors - - product x factors) with (2 * product x factors) by ring.
    rewrite Rabs_mult, A, Rabs_pos_eq by lra. reflexivity.
  - replace (product x factors - product x factors) with 0 by ring. apply Rabs_R0.
Qed.
