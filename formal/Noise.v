(** * Noise, events, post-processing and composition

    [docs/proofs/noise.md] and the first section of [docs/proofs/ledger.md]. Distributions are given by the weights of
    outcomes, and events are finite sets of outcomes. *)

From Coq Require Import Reals QArith Qreals ZArith List Lia Lra Psatz Bool.
From dpcausal Require Import Frame.
Import ListNotations.
Open Scope R_scope.

(** ** Laplace noise *)

(** The weight of a list of noisy integers [o] around an answer [a] with scales [b]; the constant by which it is divided
    is that of the scales alone, the same for every table. *)
Fixpoint laplace (o a : list Z) (b : list R) : R :=
  match o, a, b with
  | x :: o', y :: a', s :: b' => exp (- (Rabs (IZR (x - y)) / s)) * laplace o' a' b'
  | _, _, _ => 1
  end.

Fixpoint distance_in (a c : list Z) (b : list R) : R :=
  match a, c, b with
  | x :: a', y :: c', s :: b' => Rabs (IZR (x - y)) / s + distance_in a' c' b'
  | _, _, _ => 0
  end.

Theorem laplace_ratio a c b : Forall (fun s => 0 < s) b -> length a = length c ->
  forall o, laplace o a b <= exp (distance_in a c b) * laplace o c b.
Proof.
  intros H. revert a c. induction H as [|s b P H IH]; intros a c L o.
  - destruct o, a, c; cbn [laplace distance_in]; rewrite exp_0; lra.
  - destruct a as [|x a], c as [|y c]; try discriminate; [destruct o; cbn; rewrite exp_0; lra|].
    injection L as L. cbn [distance_in]. destruct o as [|k o].
    { cbn [laplace]. assert (0 <= Rabs (IZR (x - y)) / s) by (apply Rmult_le_pos; [apply Rabs_pos|left; now apply Rinv_0_lt_compat]).
      assert (0 <= distance_in a c b).
      { clear - H. revert c. revert a. induction H; intros [|p a] [|q c]; cbn [distance_in]; try lra.
        specialize (IHForall a c). assert (0 <= Rabs (IZR (p - q)) / x) by (apply Rmult_le_pos; [apply Rabs_pos|left; now apply Rinv_0_lt_compat]). lra. }
      assert (exp 0 <= exp (Rabs (IZR (x - y)) / s + distance_in a c b)).
      { destruct (Req_dec 0 (Rabs (IZR (x - y)) / s + distance_in a c b)) as [E|E]; [rewrite <- E; lra|]. left. apply exp_increasing. lra. }
      rewrite exp_0 in *. lra. }
    cbn [laplace]. specialize (IH a c L o). rewrite exp_plus.
    assert (T : exp (- (Rabs (IZR (k - x)) / s)) <= exp (Rabs (IZR (x - y)) / s) * exp (- (Rabs (IZR (k - y)) / s))).
    { rewrite <- exp_plus. assert (A : - (Rabs (IZR (k - x)) / s) <= Rabs (IZR (x - y)) / s + - (Rabs (IZR (k - y)) / s)).
      { assert (B : Rabs (IZR (k - y)) <= Rabs (IZR (k - x)) + Rabs (IZR (x - y))).
        { replace (k - y)%Z with ((k - x) + (x - y))%Z by ring. rewrite plus_IZR. apply Rabs_triang. }
        assert (I := Rinv_0_lt_compat s P). unfold Rdiv. nra. }
      destruct A as [A|A]; [left; now apply exp_increasing|rewrite A; lra]. }
    assert (0 < exp (- (Rabs (IZR (k - x)) / s))) by apply exp_pos.
    assert (Q : forall o' a' b', 0 < laplace o' a' b').
    { induction o'; intros [|] [|]; cbn [laplace]; try lra. apply Rmult_lt_0_compat; [apply exp_pos|apply IHo']. }
    assert (0 < laplace o a b) by apply Q.
    replace (exp (Rabs (IZR (x - y)) / s) * exp (distance_in a c b) * (exp (- (Rabs (IZR (k - y)) / s)) * laplace o c b))
      with ((exp (Rabs (IZR (x - y)) / s) * exp (- (Rabs (IZR (k - y)) / s))) * (exp (distance_in a c b) * laplace o c b)) by ring.
    apply Rmult_le_compat; lra.
Qed.

(** Scales of at least weight times bound over epsilon turn a bound in the l1 norm into epsilon. *)
Theorem laplace_scale (x w b e s : R) : 0 < w -> 0 < b -> 0 < e -> w * b / e <= s -> Rabs x / s <= e / b * (Rabs x / w).
Proof.
  intros W B E S. assert (0 < w * b / e) by (apply Rdiv_lt_0_compat; nra). assert (A := Rabs_pos x).
  replace (e / b * (Rabs x / w)) with (Rabs x * / (w * b / e)) by (field; lra).
  apply Rmult_le_compat_l; [exact A|]. apply Rinv_le_contravar; lra.
Qed.

(** Scales of at least weight times bound times s: a bound in the l2 norm gives 1 / (2 s^2) of zCDP. *)
Theorem gaussian_scale (x w b s t : R) : 0 < w -> 0 < b -> 0 < s -> w * b * s <= t ->
  x ^ 2 / (2 * t ^ 2) <= (x / w) ^ 2 / (2 * b ^ 2 * s ^ 2).
Proof.
  intros W B S T. assert (P : 0 < w * b * s) by (repeat apply Rmult_lt_0_compat; lra).
  replace ((x / w) ^ 2 / (2 * b ^ 2 * s ^ 2)) with (x ^ 2 * / (2 * (w * b * s) ^ 2)) by (field; lra).
  apply Rmult_le_compat_l; [apply pow2_ge_0|]. apply Rinv_le_contravar; nra.
Qed.

(** ** Events and post-processing *)

Fixpoint weight_of {O : Type} (p : O -> R) (event : list O) : R :=
  match event with [] => 0 | o :: rest => p o + weight_of p rest end.

Theorem event_ratio {O : Type} (p q : O -> R) k : (forall o, p o <= k * q o) ->
  forall event, weight_of p event <= k * weight_of q event.
Proof. intros H event. induction event as [|o rest IH]; cbn [weight_of]; [lra|]. specialize (H o). lra. Qed.

(** Whatever is made of an outcome, what the result says is an event of outcomes. *)
Theorem post_processing {O S : Type} (p q : O -> R) k (outcomes : list O) (f : O -> S) (said : S -> bool) :
  (forall o, p o <= k * q o) ->
  weight_of p (filter (fun o => said (f o)) outcomes) <= k * weight_of q (filter (fun o => said (f o)) outcomes).
Proof. intros H. now apply event_ratio. Qed.

(** ** Adaptive composition with a filter

    A dialogue asks a query whose price, and what comes next, may depend on all answers so far. *)

Inductive dialogue (O : Type) :=
  | Stop
  | Ask (price : R) (p q : O -> R) (next : O -> dialogue O).
Arguments Stop {O}. Arguments Ask {O}.

(** The filter of the ledger: no path costs more than the budget. *)
Fixpoint within_budget {O} (budget : R) (d : dialogue O) : Prop :=
  match d with
  | Stop => 0 <= budget
  | Ask price _ _ next => forall o, within_budget (budget - price) (next o)
  end.

Fixpoint each_private {O} (d : dialogue O) : Prop :=
  match d with
  | Stop => True
  | Ask price p q next => (forall o, 0 <= p o /\ 0 <= q o /\ p o <= exp price * q o) /\ forall o, each_private (next o)
  end.

(** The probability of a list of answers, on one table (true) or on its neighbour. *)
Fixpoint transcript {O} (one : bool) (d : dialogue O) (answers : list O) : R :=
  match d, answers with
  | Stop, [] => 1
  | Ask _ p q next, o :: rest => (if one then p o else q o) * transcript one (next o) rest
  | _, _ => 0
  end.

Theorem additive_filter {O} (d : dialogue O) : forall budget, each_private d -> within_budget budget d ->
  forall answers, 0 <= transcript true d answers /\ 0 <= transcript false d answers /\
    transcript true d answers <= exp budget * transcript false d answers.
Proof.
  induction d as [|price p q next IH]; intros budget P B answers; cbn in *.
  - destruct answers; [|lra]. assert (exp 0 <= exp budget); [|rewrite exp_0 in *; lra].
    destruct B as [B|B]; [left; now apply exp_increasing|rewrite B; lra].
  - destruct answers as [|o rest]; [lra|]. destruct P as [P N].
    destruct (IH o (budget - price) (N o) (B o) rest) as (A & C & D). destruct (P o) as (E & F & H).
    assert (X : exp budget = exp price * exp (budget - price)) by (rewrite <- exp_plus; f_equal; ring).
    repeat split; try (apply Rmult_le_pos; assumption). rewrite X.
    replace (exp price * exp (budget - price) * (q o * transcript false (next o) rest))
      with ((exp price * q o) * (exp (budget - price) * transcript false (next o) rest)) by ring.
    apply Rmult_le_compat; lra.
Qed.

(** zCDP of one order: [m] stands for p^order * q^(1 - order), whose sum over answers is at most exp (k * rho). *)
Inductive rho_dialogue (O : Type) :=
  | RhoStop
  | RhoAsk (rho : R) (m : O -> R) (next : O -> rho_dialogue O).
Arguments RhoStop {O}. Arguments RhoAsk {O}.

Fixpoint within_rho {O} (budget : R) (d : rho_dialogue O) : Prop :=
  match d with RhoStop => 0 <= budget | RhoAsk rho _ next => forall o, within_rho (budget - rho) (next o) end.

Fixpoint each_rho {O} (k : R) (outcomes : list O) (d : rho_dialogue O) : Prop :=
  match d with
  | RhoStop => True
  | RhoAsk rho m next => (forall o, 0 <= m o) /\ weight_of m outcomes <= exp (k * rho) /\ forall o, each_rho k outcomes (next o)
  end.

(** The sum over all transcripts. *)
Fixpoint moment {O} (outcomes : list O) (d : rho_dialogue O) : R :=
  match d with RhoStop => 1 | RhoAsk _ m next => weight_of (fun o => m o * moment outcomes (next o)) outcomes end.

Theorem zcdp_filter {O} (k : R) (outcomes : list O) (d : rho_dialogue O) : 0 <= k ->
  forall budget, each_rho k outcomes d -> within_rho budget d -> moment outcomes d <= exp (k * budget).
Proof.
  intros K. induction d as [|rho m next IH]; intros budget P B; cbn in *.
  - assert (exp 0 <= exp (k * budget)); [|rewrite exp_0 in *; lra].
    assert (0 <= k * budget) by nra. destruct H as [H|H]; [left; now apply exp_increasing|rewrite <- H; lra].
  - destruct P as (M & W & N).
    assert (S : forall os, weight_of (fun o => m o * moment outcomes (next o)) os <= weight_of m os * exp (k * (budget - rho))).
    { induction os as [|o os S]; cbn [weight_of]; [lra|].
      assert (m o * moment outcomes (next o) <= m o * exp (k * (budget - rho))) by
        (apply Rmult_le_compat_l; [apply M|apply IH; [apply N|apply B]]). lra. }
    eapply Rle_trans; [apply S|]. replace (exp (k * budget)) with (exp (k * rho) * exp (k * (budget - rho)))
      by (rewrite <- exp_plus; f_equal; ring).
    apply Rmult_le_compat_r; [left; apply exp_pos|exact W].
Qed.
