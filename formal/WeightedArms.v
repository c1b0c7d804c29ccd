(** * Weighted arms

    Six sums of a unit's weight and outcome, with the sign of its arm. *)

From Coq Require Import Reals QArith Qreals ZArith List Lia Lra Psatz Bool.
From dpcausal Require Import Grid Frame Moments.
Import ListNotations.
Open Scope R_scope.

Inductive weighted_sum := WDifference | WSum | WeightDifference | WeightSum | WDeficit | WeightSquare | WCompared.

(** A unit's whole numbers. [None] is a unit outside the comparison. They are made from a weight w from 0 to 1, an
    outcome z from -1 to 1 and the sign of its arm, each product rounded to ticks: off by less than one tick. *)
Record weighed := Weighed { w : R; z : R; s : R; sums : weighted_sum -> Z }.

Definition exact (u : weighed) (c : weighted_sum) : R :=
  match c with
  | WDifference => s u * w u * z u
  | WSum => w u * z u
  | WeightDifference => s u * w u
  | WeightSum => w u
  | WDeficit => w u * (1 - z u ^ 2)
  | WeightSquare => w u ^ 2
  | WCompared => 1
  end.

Definition rounded (u : weighed) : Prop :=
  0 <= w u <= 1 /\ -1 <= z u <= 1 /\ (s u = 1 \/ s u = -1) /\ sums u WCompared = 1%Z /\
  forall c, c <> WCompared -> Rabs (IZR (sums u c) / IZR G - exact u c) <= / IZR G.

Definition weighted_arms_part (u : option weighed) (c : weighted_sum) : Z :=
  match u with Some u => sums u c | None => 0%Z end.

Definition weighted_arms_sensitivity (leaves : bool) (n : norm) : sensitivity weighted_sum :=
  Sensitivity n
    ([(WDifference, Zq (2 * G)); (WSum, Zq (8 * G)); (WeightDifference, Zq (8 * G)); (WeightSum, Zq (4 * G));
      (WDeficit, Zq (8 * G)); (WeightSquare, Zq (16 * G))] ++ if leaves then [(WCompared, Zq 8)] else [])
    (match n with l1 => (5 # 4) | l2 => (1031 # 1000) end + (8 # 1048576))%Q.

(** The exact moves of all but the weighted difference, in their units. *)
Definition rest (u v : weighed) : R :=
  Rabs (w u * z u - w v * z v) / 8 + Rabs (s u * w u - s v * w v) / 8 + Rabs (w u - w v) / 4
  + Rabs (w u * (1 - z u ^ 2) - w v * (1 - z v ^ 2)) / 8 + Rabs (w u ^ 2 - w v ^ 2) / 16.

Lemma weighted_moves u v : rounded u -> rounded v ->
  Rabs (s u * w u * z u - s v * w v * z v) / 2 <= 1 /\ rest u v <= 3 / 4 /\
  Rabs (s u * w u * z u - s v * w v * z v) / 2 + rest u v <= 5 / 4.
Proof.
  assert (K : forall u v, w v <= w u -> rounded u -> rounded v ->
    Rabs (s u * w u * z u - s v * w v * z v) / 2 <= 1 /\ rest u v <= 3 / 4 /\
    Rabs (s u * w u * z u - s v * w v * z v) / 2 + rest u v <= 5 / 4).
  { clear. intros u v L (Wu & Zu & Su & _) (Wv & Zv & Sv & _). unfold rest.
    set (a := w u) in *. set (b := w v) in *. set (x := z u) in *. set (y := z v) in *.
    assert (exists p q, 0 <= p /\ 0 <= q /\ p + q <= 2 /\ Rabs (x + y) = p /\ Rabs (x - y) = q) as (p & q & P & Q & PQ & Ep & Eq).
    { exists (Rabs (x + y)), (Rabs (x - y)). repeat split; try apply Rabs_pos.
      unfold Rabs. destruct (Rcase_abs (x + y)), (Rcase_abs (x - y)); lra. }
    assert (M : Rabs (a * x - b * y) <= (a - b) + b * q).
    { replace (a * x - b * y) with ((a - b) * x + b * (x - y)) by ring.
      eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult, Eq, (Rabs_pos_eq (a - b)), (Rabs_pos_eq b) by lra.
      assert (Rabs x <= 1) by (apply Rabs_le; lra). nra. }
    assert (N : Rabs (a * x + b * y) <= (a - b) + b * p).
    { replace (a * x + b * y) with ((a - b) * x + b * (x + y)) by ring.
      eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult, Ep, (Rabs_pos_eq (a - b)), (Rabs_pos_eq b) by lra.
      assert (Rabs x <= 1) by (apply Rabs_le; lra). nra. }
    assert (D : Rabs (a * (1 - x ^ 2) - b * (1 - y ^ 2)) <= (a - b) + b * (p * q)).
    { replace (a * (1 - x ^ 2) - b * (1 - y ^ 2)) with ((a - b) * (1 - x ^ 2) + b * (- ((x + y) * (x - y)))) by ring.
      eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult, Rabs_Ropp, Rabs_mult, Ep, Eq, (Rabs_pos_eq (a - b)), (Rabs_pos_eq b) by lra.
      assert (Rabs (1 - x ^ 2) <= 1) by (apply Rabs_le; nra). nra. }
    assert (E : Rabs (a ^ 2 - b ^ 2) <= 2 * (a - b)) by (rewrite Rabs_pos_eq; nra).
    assert (F : Rabs (a - b) = a - b) by (apply Rabs_pos_eq; lra).
    assert (H : Rabs (a + b) = a + b) by (apply Rabs_pos_eq; lra).
    assert (B1 : 0 <= b * q) by nra. assert (B2 : 0 <= b * p) by nra. assert (B3 : b * p + b * q <= 2 * b) by nra.
    assert (B4 : b * (p * q) <= b * (p * (2 - p))) by (apply Rmult_le_compat_l; nra).
    assert (B5 : b * (p * q) <= b * (q * (2 - q))) by (apply Rmult_le_compat_l; nra).
    assert (B6 : b * (p * (2 - p)) <= b) by (assert (0 <= b * (1 - p) ^ 2) by (apply Rmult_le_pos; [lra|apply pow2_ge_0]); nra).
    assert (C1 : 0 <= b * ((2 - p) * (3 - p))) by (apply Rmult_le_pos; [lra|]; nra).
    assert (C2 : 0 <= b * ((2 - q) * (5 - q))) by (apply Rmult_le_pos; [lra|]; nra).
    destruct Su as [Su|Su], Sv as [Sv|Sv]; rewrite Su, Sv.
    - replace (1 * a * x - 1 * b * y) with (a * x - b * y) by ring. replace (1 * a - 1 * b) with (a - b) by ring.
      rewrite F. repeat split; lra.
    - replace (1 * a * x - -1 * b * y) with (a * x + b * y) by ring. replace (1 * a - -1 * b) with (a + b) by ring.
      rewrite F, H. repeat split; lra.
    - replace (-1 * a * x - 1 * b * y) with (- (a * x + b * y)) by ring. replace (-1 * a - 1 * b) with (- (a + b)) by ring.
      rewrite !Rabs_Ropp, F, H. repeat split; lra.
    - replace (-1 * a * x - -1 * b * y) with (- (a * x - b * y)) by ring. replace (-1 * a - -1 * b) with (- (a - b)) by ring.
      rewrite !Rabs_Ropp, F. repeat split; lra. }
  intros U V. destruct (Rle_dec (w v) (w u)) as [L|L]; [now apply K|].
  assert (L' : w u <= w v) by lra. specialize (K v u L' V U). unfold rest in *.
  rewrite (Rabs_minus_sym (s u * w u * z u)), (Rabs_minus_sym (w u * z u)), (Rabs_minus_sym (s u * w u) (s v * w v)),
    (Rabs_minus_sym (w u) (w v)), (Rabs_minus_sym (w u * (1 - z u ^ 2))), (Rabs_minus_sym (w u ^ 2)). exact K.
Qed.

(** One unit's own part: a unit that leaves the comparison or joins it. *)
Lemma weighted_alone u : rounded u ->
  Rabs (s u * w u * z u) <= 1 /\ Rabs (w u * z u) <= 1 /\ Rabs (s u * w u) <= 1 /\ Rabs (w u) <= 1 /\
  Rabs (w u * (1 - z u ^ 2)) <= 1 /\ Rabs (w u ^ 2) <= 1 /\
  Rabs (s u * w u * z u) / 2 + Rabs (w u * z u) / 8 + Rabs (s u * w u) / 8 + Rabs (w u) / 4
    + Rabs (w u * (1 - z u ^ 2)) / 8 + Rabs (w u ^ 2) / 16 <= 17 / 16 /\
  Rabs (w u * z u) / 8 + Rabs (s u * w u) / 8 + Rabs (w u) / 4
    + Rabs (w u * (1 - z u ^ 2)) / 8 + Rabs (w u ^ 2) / 16 <= 5 / 8.
Proof.
  intros (W & Z & S & _). assert (A : Rabs (s u) = 1) by (destruct S as [S|S]; rewrite S; unfold Rabs; destruct Rcase_abs; lra).
  rewrite !Rabs_mult, A, (Rabs_pos_eq (w u)), (Rabs_pos_eq (w u ^ 2)), (Rabs_pos_eq (1 - z u ^ 2)) by nra.
  assert (B := Rabs_pos (z u)). assert (C : Rabs (z u) <= 1) by (apply Rabs_le; lra).
  assert (D : z u ^ 2 = Rabs (z u) ^ 2) by now rewrite pow2_abs. rewrite D.
  set (a := w u) in *. set (x := Rabs (z u)) in *. clearbody a x.
  assert (0 <= a * x <= a) by nra. assert (0 <= a * x ^ 2 <= a * x) by nra. assert (a ^ 2 <= a) by nra.
  assert (0 <= a * (1 - x) ^ 2) by (apply Rmult_le_pos; [lra|apply pow2_ge_0]).
  assert (0 <= a * (x - 1 / 2) ^ 2) by (apply Rmult_le_pos; [lra|apply pow2_ge_0]).
  repeat split; try lra; nra.
Qed.

Theorem weighted_arms leaves n :
  bounded (fun u v => (forall x, u = Some x -> rounded x) /\ (forall x, v = Some x -> rounded x))
    (answer weighted_arms_part) (weighted_arms_sensitivity leaves n).
Proof.
  apply bounded_by_units. intros u v [U V].
  (* how far each whole number can be from its exact move, in ticks *)
  assert (K : exists e1 e2 e3 e4 e5 e6 c, 0 <= e1 /\ 0 <= e2 /\ 0 <= e3 /\ 0 <= e4 /\ 0 <= e5 /\ 0 <= e6 /\ 0 <= c /\
    (forall p e, In (p, e) [(WDifference, e1); (WSum, e2); (WeightDifference, e3); (WeightSum, e4); (WDeficit, e5); (WeightSquare, e6)] ->
      Rabs (IZR (weighted_arms_part u p - weighted_arms_part v p)) <= IZR G * (e + 2 / IZR G)) /\
    Rabs (IZR (weighted_arms_part u WCompared - weighted_arms_part v WCompared)) = c /\
    e1 / 2 <= 1 /\ e2 / 8 + e3 / 8 + e4 / 4 + e5 / 8 + e6 / 16 + c / 8 <= 3 / 4 /\
    e1 / 2 + (e2 / 8 + e3 / 8 + e4 / 4 + e5 / 8 + e6 / 16 + c / 8) <= 5 / 4).
  { assert (Gp : 0 < IZR G) by (apply IZR_lt; reflexivity). assert (Gi := Rinv_0_lt_compat _ Gp).
    assert (R : forall a b x y, Rabs (IZR a / IZR G - x) <= / IZR G -> Rabs (IZR b / IZR G - y) <= / IZR G ->
      Rabs (IZR (a - b)) <= IZR G * (Rabs (x - y) + 2 / IZR G)).
    { intros a b x y A B. rewrite minus_IZR.
      replace (IZR a - IZR b) with (IZR G * ((x - y) + ((IZR a / IZR G - x) - (IZR b / IZR G - y)))) by (field; lra).
      rewrite Rabs_mult, (Rabs_pos_eq (IZR G)) by lra. apply Rmult_le_compat_l; [lra|].
      eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat_l.
      eapply Rle_trans; [unfold Rminus at 1; apply Rabs_triang|]. rewrite Rabs_Ropp. unfold Rdiv. lra. }
    assert (R0 : Rabs (IZR 0 / IZR G - 0) <= / IZR G) by (unfold Rdiv; rewrite Rmult_0_l, Rminus_0_r, Rabs_R0; lra).
    destruct u as [u|], v as [v|]; cbn [weighted_arms_part].
    - specialize (U u eq_refl). specialize (V v eq_refl). destruct (weighted_moves u v U V) as (A & B & C). unfold rest in *.
      exists (Rabs (s u * w u * z u - s v * w v * z v)), (Rabs (w u * z u - w v * z v)), (Rabs (s u * w u - s v * w v)),
        (Rabs (w u - w v)), (Rabs (w u * (1 - z u ^ 2) - w v * (1 - z v ^ 2))), (Rabs (w u ^ 2 - w v ^ 2)), 0.
      destruct U as (_ & _ & _ & Cu & Eu), V as (_ & _ & _ & Cv & Ev).
      repeat split; try apply Rabs_pos; try lra; [|rewrite Cu, Cv; constants; reflexivity].
      intros p e I. cbn in I.
      repeat match type of I with _ \/ _ => destruct I as [I|I] end; try contradiction; injection I as <- <-; apply R;
        lazymatch goal with |- Rabs (IZR (sums _ ?c) / _ - _) <= _ => first [apply (Eu c) | apply (Ev c)] end; discriminate.
    - specialize (U u eq_refl). destruct (weighted_alone u U) as (A1 & A2 & A3 & A4 & A5 & A6 & A & A').
      exists (Rabs (s u * w u * z u)), (Rabs (w u * z u)), (Rabs (s u * w u)),
        (Rabs (w u)), (Rabs (w u * (1 - z u ^ 2))), (Rabs (w u ^ 2)), 1.
      destruct U as (_ & _ & _ & Cu & Eu).
      repeat split; try apply Rabs_pos; try lra; [|rewrite Cu; constants; reflexivity].
      intros p e I. cbn in I.
      repeat match type of I with _ \/ _ => destruct I as [I|I] end; try contradiction; injection I as <- <-;
        match goal with |- context [Rabs ?x + _] => replace x with (x - 0) by ring end; apply R; try exact R0;
        lazymatch goal with |- Rabs (IZR (sums _ ?c) / _ - _) <= _ => apply (Eu c) end; discriminate.
    - specialize (V v eq_refl). destruct (weighted_alone v V) as (A1 & A2 & A3 & A4 & A5 & A6 & A & A').
      exists (Rabs (s v * w v * z v)), (Rabs (w v * z v)), (Rabs (s v * w v)),
        (Rabs (w v)), (Rabs (w v * (1 - z v ^ 2))), (Rabs (w v ^ 2)), 1.
      destruct V as (_ & _ & _ & Cv & Ev).
      repeat split; try apply Rabs_pos; try lra; [|rewrite Cv; constants; lra].
      intros p e I. cbn in I.
      repeat match type of I with _ \/ _ => destruct I as [I|I] end; try contradiction; injection I as <- <-;
        match goal with |- context [Rabs ?x + _] => rewrite <- (Rabs_Ropp x); replace (- x) with (0 - x) by ring end;
        apply R; try exact R0;
        lazymatch goal with |- Rabs (IZR (sums _ ?c) / _ - _) <= _ => apply (Ev c) end; discriminate.
    - exists 0, 0, 0, 0, 0, 0, 0. repeat split; try lra; [|constants; reflexivity].
      intros p e I. constants. cbn in I.
      repeat match type of I with _ \/ _ => destruct I as [I|I] end; try contradiction; injection I as <- <-; unfold Rdiv; nra. }
  clear U V. destruct K as (e1 & e2 & e3 & e4 & e5 & e6 & c & P1 & P2 & P3 & P4 & P5 & P6 & P7 & H & Hc & B1 & B2 & B3).
  assert (H1 := H WDifference e1 ltac:(cbn; tauto)). assert (H2 := H WSum e2 ltac:(cbn; tauto)).
  assert (H3 := H WeightDifference e3 ltac:(cbn; tauto)). assert (H4 := H WeightSum e4 ltac:(cbn; tauto)).
  assert (H5 := H WDeficit e5 ltac:(cbn; tauto)). assert (H6 := H WeightSquare e6 ltac:(cbn; tauto)). clear H.
  set (d := fun p => IZR (weighted_arms_part u p - weighted_arms_part v p)) in *.
  unfold within, weighted_arms_sensitivity. cbn [in_norm coordinates bound]. rewrite moved_app. cbn [moved].
  rewrite !cost_abs. unfold grid in *. assert (Q := Rabs_pos).
  assert (N1 := Q (d WDifference)). assert (N2 := Q (d WSum)). assert (N3 := Q (d WeightDifference)).
  assert (N4 := Q (d WeightSum)). assert (N5 := Q (d WDeficit)). assert (N6 := Q (d WeightSquare)). clear Q.
  assert (T : moved n (if leaves then [(WCompared, Zq 8)] else []) (fun c0 => IZR (weighted_arms_part u c0 - weighted_arms_part v c0))
    <= match n with l1 => c / 8 | l2 => (c / 8) ^ 2 end).
  { destruct leaves; cbn [moved]; [rewrite cost_abs; unfold d in Hc; rewrite Hc; destruct n; numbers; lra|].
    destruct n; [lra|apply pow2_ge_0]. }
  destruct n; cbn [most].
  - numbers. unfold d in *. lra.
  - set (f2 := e2 / 8 + e3 / 8 + e4 / 4 + e5 / 8 + e6 / 16 + c / 8) in *.
    assert (F : (e1 / 2) ^ 2 + f2 ^ 2 <= 17 / 16).
    { assert (0 <= f2) by (unfold f2; lra). assert (0 <= e1 / 2) by lra.
      assert (F : forall g f, 0 <= g -> 0 <= f -> g <= 1 -> f <= 3 / 4 -> g + f <= 5 / 4 -> g ^ 2 + f ^ 2 <= 17 / 16).
      { clear. intros g f G0 F0 G1 F1 GF. destruct (Rle_dec (1 / 2) g) as [L|L].
        - assert (f ^ 2 <= (5 / 4 - g) ^ 2) by (apply pow_incr; lra).
          assert (0 <= (1 - g) * (2 * g - 1 / 2)) by (apply Rmult_le_pos; lra). lra.
        - assert (g ^ 2 <= (1 / 2) ^ 2) by (apply pow_incr; lra). assert (f ^ 2 <= (3 / 4) ^ 2) by (apply pow_incr; lra). lra. }
      apply F; assumption. }
    assert (Sq : forall x y, 0 <= x -> 0 <= y -> x ^ 2 + y ^ 2 <= (x + y) ^ 2) by (intros; nra).
    assert (Le : forall x k e, 0 < k -> 0 <= x -> x <= 1048576 * (e + 2 / 1048576) -> (x / (k * 1048576)) ^ 2 <= ((e + 2 / 1048576) / k) ^ 2).
    { intros x k e0 K0 X0 L0. apply pow_incr. split.
      - apply Rmult_le_pos; [lra|]. left. apply Rinv_0_lt_compat. lra.
      - apply Rmult_le_reg_r with (k * 1048576); [lra|]. field_simplify; lra. }
    unfold d in *. clear d.
    assert (L1 := Le _ 2 e1 ltac:(lra) N1 H1). assert (L2 := Le _ 8 e2 ltac:(lra) N2 H2).
    assert (L3 := Le _ 8 e3 ltac:(lra) N3 H3). assert (L4 := Le _ 4 e4 ltac:(lra) N4 H4).
    assert (L5 := Le _ 8 e5 ltac:(lra) N5 H5). assert (L6 := Le _ 16 e6 ltac:(lra) N6 H6). clear Le H1 H2 H3 H4 H5 H6 N1 N2 N3 N4 N5 N6.
    set (t := 2 / 1048576) in *. assert (Ht : t = 2 / 1048576) by reflexivity. clearbody t.
    assert (S1 := Sq ((e2 + t) / 8) ((e3 + t) / 8) ltac:(lra) ltac:(lra)).
    assert (S2 := Sq ((e2 + t) / 8 + (e3 + t) / 8) ((e4 + t) / 4) ltac:(lra) ltac:(lra)).
    assert (S3 := Sq ((e2 + t) / 8 + (e3 + t) / 8 + (e4 + t) / 4) ((e5 + t) / 8) ltac:(lra) ltac:(lra)).
    assert (S4 := Sq ((e2 + t) / 8 + (e3 + t) / 8 + (e4 + t) / 4 + (e5 + t) / 8) ((e6 + t) / 16) ltac:(lra) ltac:(lra)).
    assert (S5 := Sq ((e2 + t) / 8 + (e3 + t) / 8 + (e4 + t) / 4 + (e5 + t) / 8 + (e6 + t) / 16) (c / 8) ltac:(lra) ltac:(lra)).
    assert (E : (e2 + t) / 8 + (e3 + t) / 8 + (e4 + t) / 4 + (e5 + t) / 8 + (e6 + t) / 16 + c / 8 = f2 + 11 / 16 * t) by (unfold f2; lra).
    rewrite E in S5. clear Sq E.
    assert (W1 : ((e1 + t) / 2) ^ 2 <= (e1 / 2) ^ 2 + 2 * t).
    { assert (0 <= e1 <= 2) by lra. assert (0 <= t <= 1) by lra. nra. }
    assert (W2 : (f2 + 11 / 16 * t) ^ 2 <= f2 ^ 2 + 2 * t).
    { assert (0 <= f2 <= 3 / 4) by (unfold f2 in *; lra). assert (0 <= t <= 1 / 4) by lra. clear - H H0. nra. }
    rewrite ?Q2R_Zq, ?mult_IZR. match goal with |- _ <= ?r => assert (Rr : 17 / 16 + 4 * t <= r) by (numbers; rewrite Ht; lra) end.
    lra.
Qed.
