(** * A checker of certificates

    A certificate says how a box of two units is cut into smaller ones, and by which rule the change is bounded in each.
    [result] computes the bound that follows, in exact arithmetic. If it is within the claimed one, no two units in the
    box move the terms further. *)

From Coq Require Import Reals QArith Qreals ZArith List Lia Lra Psatz Bool Arith.
From dpcausal Require Import Frame Rounding Numbers Vertices Exchange.
Import ListNotations.
Open Scope R_scope.

(** What is bounded: the change of a number from one unit to the other, or the number of one of them alone. *)
Inductive kind := Change | Own | Other.
Definition term : Type := kind * number.

Definition moves (u v : unit) (t : term) : Z :=
  match fst t with
  | Change => value u (snd t) - value v (snd t)
  | Own => value u (snd t)
  | Other => value v (snd t)
  end.

Definition all_moved (n : norm) (terms : list (term * Q)) (u v : unit) : R := moved n terms (fun t => IZR (moves u v t)).

(** ** Costs in rationals *)

(** What a coordinate costs that moves by at most m. *)
Definition price (n : norm) (m : Z) (w : Q) : Q :=
  let q := (inject_Z m / w)%Q in Qred (match n with l1 => q | l2 => q * q end)%Q.
Definition add (a b : Q) : Q := Qred (a + b).
Definition larger (a b : Q) : Q := if Qle_bool a b then b else a.
Definition positive (w : Q) : bool := Z.ltb 0 (Qnum w).

Lemma positive_weight w : positive w = true -> 0 < Q2R w.
Proof.
  unfold positive, Q2R. intros H. apply Z.ltb_lt, IZR_lt in H.
  apply Rmult_lt_0_compat; [exact H|]. apply Rinv_0_lt_compat, IZR_lt. lia.
Qed.

Lemma Q2R_inject z : Q2R (inject_Z z) = IZR z.
Proof. unfold inject_Z, Q2R. cbn [Qnum Qden]. field. Qed.

Lemma Q2R_price n m w : 0 < Q2R w -> Q2R (price n m w) = match n with l1 => IZR m / Q2R w | l2 => (IZR m / Q2R w) ^ 2 end.
Proof.
  intros W. assert (N : ~ (w == 0)%Q) by (intros E; apply Qeq_eqR in E; unfold Q2R in E at 2; cbn in E; lra).
  unfold price. destruct n; rewrite (Qeq_eqR _ _ (Qred_correct _)); rewrite ?Q2R_mult, ?Q2R_div, ?Q2R_inject by exact N; [reflexivity|ring].
Qed.

Lemma cost_price n x m w : 0 < Q2R w -> Rabs x <= IZR m -> cost n x w <= Q2R (price n m w).
Proof.
  intros W X. rewrite Q2R_price by exact W. assert (V := Rinv_0_lt_compat _ W). assert (P := Rabs_pos x).
  destruct n; cbn [cost]; unfold Rdiv; [now apply Rmult_le_compat_r; [lra|]|].
  rewrite !Rpow_mult_distr. apply Rmult_le_compat_r; [apply pow2_ge_0|]. rewrite <- (pow2_abs x). apply pow_incr. lra.
Qed.

Lemma cost_price_exact n x m w : 0 < Q2R w -> Rabs x = IZR m -> cost n x w = Q2R (price n m w).
Proof.
  intros W X. rewrite Q2R_price by exact W. destruct n; cbn [cost]; unfold Rdiv; rewrite <- X; [reflexivity|].
  now rewrite !Rpow_mult_distr, pow2_abs.
Qed.

Lemma Q2R_add a b : Q2R (add a b) = Q2R a + Q2R b.
Proof. unfold add. rewrite (Qeq_eqR _ _ (Qred_correct _)). apply Q2R_plus. Qed.

Lemma larger_left a b : Q2R a <= Q2R (larger a b).
Proof. unfold larger. destruct (Qle_bool a b) eqn:E; [apply Qle_Rle; now apply Qle_bool_iff|lra]. Qed.

Lemma larger_right a b : Q2R b <= Q2R (larger a b).
Proof.
  unfold larger. destruct (Qle_bool a b) eqn:E; [lra|]. apply Qle_Rle.
  destruct (Qlt_le_dec b a) as [H|H]; [now apply Qlt_le_weak|]. apply Qle_bool_iff in H. congruence.
Qed.

(** ** First rule: ranges *)

Definition term_range (b : box) (t : term) : range :=
  let r := reach b (snd t) in match fst t with Change => of_change r | Own => of_own r | Other => of_other r end.

Fixpoint by_ranges (n : norm) (b : box) (terms : list (term * Q)) : Q :=
  match terms with [] => 0%Q | (t, w) :: rest => add (price n (size (term_range b t)) w) (by_ranges n b rest) end.

Definition weighted (terms : list (term * Q)) : Prop := Forall (fun t => positive (snd t) = true) terms.

Lemma by_ranges_bounds n b terms u v : weighted terms -> inside b u v ->
  all_moved n terms u v <= Q2R (by_ranges n b terms).
Proof.
  intros W I. unfold all_moved. induction W as [|[t w] rest P W IH]; cbn [moved by_ranges]; [unfold Q2R; cbn; lra|].
  rewrite Q2R_add. apply Rplus_le_compat; [|exact IH]. apply cost_price; [now apply positive_weight|].
  rewrite <- abs_IZR. apply IZR_le, size_bounds. destruct (reach_within b u v (snd t) I) as (A & B & C).
  unfold term_range, moves. now destruct (fst t).
Qed.

(** ** Second rule: products at their vertices *)

(** A number as a constant times factors. *)
Fixpoint factors_of (e : number) : Z * list number :=
  match e with
  | Constant z => (z, [])
  | Times a b => let f := factors_of a in let g := factors_of b in ((fst f * fst g)%Z, snd f ++ snd g)
  | _ => (1%Z, [e])
  end.

Fixpoint values_product (u : unit) (es : list number) : Z :=
  match es with [] => 1%Z | e :: r => (value u e * values_product u r)%Z end.

Lemma values_product_app u a b : values_product u (a ++ b) = (values_product u a * values_product u b)%Z.
Proof. induction a as [|x a IH]; cbn [values_product app]; [|rewrite IH]; ring. Qed.

Lemma factors_right u e : value u e = (fst (factors_of e) * values_product u (snd (factors_of e)))%Z.
Proof.
  induction e as [i|z|x IHx y IHy|x IHx y IHy|x IHx k|x IHx l m|c IHc l m x IHx|x IHx l];
    cbn [factors_of fst snd values_product value]; try ring.
  rewrite values_product_app, IHx, IHy. ring.
Qed.

Fixpoint position (e : number) (es : list number) : option nat :=
  match es with
  | [] => None
  | f :: r => if same_number e f then Some 0%nat else option_map S (position e r)
  end.

Definition nothing : number := Constant 0.

Lemma position_right e es j : position e es = Some j -> nth j es nothing = e /\ (j < length es)%nat.
Proof.
  revert j. induction es as [|f r IH]; cbn [position]; intros j E; [discriminate|].
  destruct (same_number e f) eqn:S; [injection E as <-; apply same_number_equal in S; subst; cbn; split; [reflexivity|lia]|].
  destruct (position e r) as [k|]; [|discriminate]. injection E as <-. destruct (IH k eq_refl). cbn. split; [assumption|lia].
Qed.

Fixpoint positions (es fs : list number) : option (list nat) :=
  match es with
  | [] => Some []
  | e :: r => match position e fs, positions r fs with Some j, Some js => Some (j :: js) | _, _ => None end
  end.

Fixpoint distinct (l : list nat) : bool := match l with [] => true | x :: r => negb (member r x) && distinct r end.

Lemma distinct_nodup l : distinct l = true -> NoDup l.
Proof.
  induction l as [|x r IH]; cbn [distinct]; intros D; constructor; apply andb_prop in D as [D E]; [|auto].
  intros I. apply member_in in I. rewrite I in D. discriminate.
Qed.

(** A term as its kind, its constant and the places of its factors, all different. *)
Definition monomial : Type := kind * Z * list nat.

Fixpoint monomials (fs : list number) (terms : list (term * Q)) : option (list (monomial * Q)) :=
  match terms with
  | [] => Some []
  | ((k, e), w) :: rest =>
      match positions (snd (factors_of e)) fs, monomials fs rest with
      | Some js, Some ms => if distinct js then Some ((k, fst (factors_of e), js, w) :: ms) else None
      | _, _ => None
      end
  end.

Section AtVertices.
Context (n : norm) (b : box) (fs : list number).

Definition factor (j : nat) : number := nth j fs nothing.
Definition largest_size (j : nat) : Z := let r := reach b (factor j) in Z.max (size (of_own r)) (size (of_other r)).
Definition may_turn (j : nat) : bool := negb (is_zero (of_change (reach b (factor j)))).

Fixpoint sizes_product (js : list nat) : Z := match js with [] => 1%Z | j :: r => (largest_size j * sizes_product r)%Z end.

(** What each product costs if it turns. *)
Fixpoint items (ms : list (monomial * Q)) : list item :=
  match ms with
  | [] => []
  | ((Change, c, js), w) :: rest => (price n (2 * (Z.abs c * sizes_product js)) w, sort js) :: items rest
  | _ :: rest => items rest
  end.

(** What the numbers of one unit alone cost. *)
Fixpoint alone (ms : list (monomial * Q)) : Q :=
  match ms with
  | [] => 0%Q
  | ((Change, _, _), _) :: rest => alone rest
  | ((_, c, js), w) :: rest => add (price n (Z.abs c * sizes_product js) w) (alone rest)
  end.

Fixpoint turned_cost (turns : nat -> bool) (is : list item) : Q :=
  match is with [] => 0%Q | (q, js) :: rest => if odd_turns turns js then add q (turned_cost turns rest) else turned_cost turns rest end.

Lemma turned_cost_right t is : Q2R (turned_cost t is) = turned t is.
Proof.
  induction is as [|[q js] rest IH]; cbn [turned_cost turned]; [unfold Q2R; cbn; lra|].
  destruct (odd_turns t js); [rewrite Q2R_add|]; lra.
Qed.

Definition all_placed (groups : list (list nat)) : bool :=
  forallb (fun j => negb (may_turn j) || member (concat groups) j) (seq 0 (length fs)).

Definition by_vertices (groups : list (list nat)) (terms : list (term * Q)) : option Q :=
  match monomials fs terms with
  | None => None
  | Some ms =>
      let is := items ms in
      if distinct (concat groups) && all_placed groups && forallb (fun g => is_group g is) groups
      then Some (add (alone ms) (fold_right (fun p => larger (turned_cost (member p) is)) 0%Q (patterns groups)))
      else None
  end.

(** The point of all factors of both units: of the one at even places, of the other at odd places. *)
Definition at_own (j : nat) : nat := (2 * j)%nat.
Definition at_other (j : nat) : nat := if may_turn j then (2 * j + 1)%nat else (2 * j)%nat.
Definition whole_point (u v : unit) : point :=
  fun i => IZR (value (if Nat.even i then u else v) (factor (Nat.div2 i))).

Definition monomial_move (x : point) (m : monomial) : R :=
  match m with
  | (Change, c, js) => IZR c * (product x (map at_own js) - product x (map at_other js))
  | (Own, c, js) => IZR c * product x (map at_own js)
  | (Other, c, js) => IZR c * product x (map at_other js)
  end.

Lemma own_value u v j : whole_point u v (at_own j) = IZR (value u (factor j)).
Proof.
  unfold whole_point, at_own. rewrite Nat.even_mul. cbn [Nat.even orb]. now rewrite Nat.div2_double.
Qed.

Lemma other_value u v j : inside b u v -> whole_point u v (at_other j) = IZR (value v (factor j)).
Proof.
  intros I. unfold at_other. destruct (may_turn j) eqn:E.
  - unfold whole_point. rewrite Nat.even_add, Nat.even_mul. cbn [Nat.even orb Bool.eqb].
    replace (2 * j + 1)%nat with (S (2 * j)) by lia. now rewrite Nat.div2_succ_double.
  - fold (at_own j). rewrite own_value. apply negb_false_iff in E. destruct (reach_within b u v (factor j) I) as (_ & _ & C).
    apply (is_zero_zero _ _ E) in C. f_equal. lia.
Qed.

Lemma product_own u v js : product (whole_point u v) (map at_own js) = IZR (values_product u (map factor js)).
Proof. induction js as [|j r IH]; cbn [map product values_product]; [reflexivity|]. rewrite IH, own_value, mult_IZR. reflexivity. Qed.

Lemma product_other u v js : inside b u v -> product (whole_point u v) (map at_other js) = IZR (values_product v (map factor js)).
Proof.
  intros I. induction js as [|j r IH]; cbn [map product values_product]; [reflexivity|].
  rewrite IH, other_value, mult_IZR by exact I. reflexivity.
Qed.

Lemma positions_right es js : positions es fs = Some js -> map factor js = es /\ Forall (fun j => (j < length fs)%nat) js.
Proof.
  revert js. induction es as [|e r IH]; cbn [positions]; intros js E; [injection E as <-; split; constructor|].
  destruct (position e fs) as [j|] eqn:P; [|discriminate]. destruct (positions r fs) as [ks|]; [|discriminate].
  injection E as <-. destruct (position_right _ _ _ P) as [A B]. destruct (IH ks eq_refl) as [C D].
  cbn [map]. unfold factor at 1. rewrite A, C. split; [reflexivity|now constructor].
Qed.

Definition well_placed (ms : list (monomial * Q)) : Prop :=
  Forall (fun m => NoDup (snd (fst m)) /\ Forall (fun j => (j < length fs)%nat) (snd (fst m)) /\ positive (snd m) = true) ms.

Lemma monomials_right terms ms u v : weighted terms -> inside b u v -> monomials fs terms = Some ms ->
  well_placed ms /\ all_moved n terms u v = moved n ms (monomial_move (whole_point u v)).
Proof.
  intros W I. unfold all_moved. revert ms. induction W as [|[[k e] w] rest P W IH]; cbn [monomials]; intros ms E.
  - injection E as <-. split; [constructor|reflexivity].
  - destruct (positions (snd (factors_of e)) fs) as [js|] eqn:J; [|discriminate].
    destruct (monomials fs rest) as [ks|]; [|discriminate]. destruct (distinct js) eqn:D; [|discriminate].
    injection E as <-. destruct (IH ks eq_refl) as [A B]. destruct (positions_right _ _ J) as [F L].
    split; [constructor; [cbn; auto using distinct_nodup|exact A]|]. cbn [moved]. rewrite B. f_equal. f_equal.
    unfold moves. cbn [fst snd].
    assert (X := factors_right u e). assert (Y := factors_right v e). rewrite <- F in X, Y.
    destruct k; cbn [monomial_move]; rewrite ?product_own, ?product_other by exact I;
      rewrite ?minus_IZR, ?X, ?Y, ?mult_IZR; ring.
Qed.

Lemma at_own_injective js : NoDup js -> NoDup (map at_own js).
Proof.
  induction 1 as [|j r H N IH]; cbn [map]; constructor; [|exact IH].
  intros C. apply in_map_iff in C as (k & E & K). unfold at_own in E. assert (k = j) by lia. now subst.
Qed.

Lemma at_other_injective js : NoDup js -> NoDup (map at_other js).
Proof.
  induction 1 as [|j r H N IH]; cbn [map]; constructor; [|exact IH].
  intros C. apply in_map_iff in C as (k & E & K). unfold at_other in E.
  assert (k = j) by (destruct (may_turn k), (may_turn j); lia). now subst.
Qed.

Lemma monomial_affine i m : NoDup (snd m) -> affine_in i (fun x => monomial_move x m).
Proof.
  destruct m as [[k c] js]. cbn [snd]. intros N.
  destruct k; cbn [monomial_move]; apply affine_scale; [apply affine_minus|..]; apply product_affine;
    auto using at_own_injective, at_other_injective.
Qed.

Lemma monomial_proper m : proper (fun x => monomial_move x m).
Proof.
  intros x y H. destruct m as [[k c] js].
  assert (E : forall l, product x l = product y l) by (intros l; apply product_ext; auto).
  destruct k; cbn [monomial_move]; now rewrite !E.
Qed.

Definition limit (i : nat) : R := IZR (largest_size (Nat.div2 i)).

Lemma point_within u v i : inside b u v -> - limit i <= whole_point u v i <= limit i.
Proof.
  intros I. unfold limit, whole_point. destruct (reach_within b u v (factor (Nat.div2 i)) I) as (A & B & _).
  apply size_bounds in A, B. unfold largest_size. rewrite <- opp_IZR.
  split; apply IZR_le; destruct (Nat.even i); lia.
Qed.

Lemma product_map (x : point) (g : nat -> nat) js : product x (map g js) = product (fun j => x (g j)) js.
Proof. induction js as [|j r IH]; cbn [map product]; [|rewrite IH]; reflexivity. Qed.

Lemma sizes_product_right js : IZR (sizes_product js) = product (fun j => IZR (largest_size j)) js.
Proof. induction js as [|j r IH]; cbn [sizes_product product]; [|rewrite mult_IZR, IH]; reflexivity. Qed.

Lemma product_abs (x m : point) js : (forall j, In j js -> Rabs (x j) = m j) -> Rabs (product x js) = product m js.
Proof.
  induction js as [|j r IH]; cbn [product]; intros H; [apply Rabs_R1|].
  rewrite Rabs_mult, IH, H; auto with datatypes.
Qed.

(** At a vertex y the terms cost what the items cost that turn, and the rest. *)
Lemma vertex_cost ms (y : point) (turns : nat -> bool) : well_placed ms ->
  (forall j, (j < length fs)%nat -> Rabs (y (at_own j)) = IZR (largest_size j)
    /\ y (at_other j) = if turns j then - y (at_own j) else y (at_own j)) ->
  moved n ms (monomial_move y) = Q2R (alone ms) + turned turns (items ms).
Proof.
  intros W H. induction W as [|[[[k c] js] w] rest (N & L & P) W IH]; cbn [moved alone items turned fst snd] in *;
    [unfold Q2R; cbn; lra|].
  apply positive_weight in P. rewrite Forall_forall in L.
  assert (A : forall j, In j js -> Rabs (y (at_own j)) = IZR (largest_size j)) by (intros j J; now apply H, L).
  assert (B : forall j, In j js -> y (at_other j) = if turns j then - y (at_own j) else y (at_own j)) by (intros j J; now apply H, L).
  destruct k; rewrite ?IH; cbn [monomial_move]; rewrite !product_map.
  - cbn [turned]. rewrite odd_turns_sort.
    assert (V := product_moves_at_vertex (fun j => y (at_own j)) (fun j => y (at_other j))
      (fun j => IZR (largest_size j)) turns js A B).
    assert (R : cost n (IZR c * (product (fun j => y (at_own j)) js - product (fun j => y (at_other j)) js)) w
      = if odd_turns turns js then Q2R (price n (2 * (Z.abs c * sizes_product js)) w) else 0); [|rewrite R; ring].
    destruct (odd_turns turns js).
    + apply cost_price_exact; [exact P|]. rewrite Rabs_mult, V, !mult_IZR, sizes_product_right, abs_IZR. ring.
    + assert (E : product (fun j => y (at_own j)) js - product (fun j => y (at_other j)) js = 0).
      { destruct (Req_dec (product (fun j => y (at_own j)) js - product (fun j => y (at_other j)) js) 0); [assumption|].
        apply Rabs_no_R0 in H0. contradiction. }
      rewrite E, Rmult_0_r. apply cost_0.
  - rewrite Q2R_add.
    rewrite (cost_price_exact n _ (Z.abs c * sizes_product js) w P); [ring|].
    rewrite Rabs_mult, mult_IZR, sizes_product_right, abs_IZR. f_equal. now apply product_abs.
  - rewrite Q2R_add.
    rewrite (cost_price_exact n _ (Z.abs c * sizes_product js) w P); [ring|].
    rewrite Rabs_mult, mult_IZR, sizes_product_right, abs_IZR. f_equal. apply product_abs.
    intros j J. rewrite B by exact J. destruct (turns j); rewrite ?Rabs_Ropp; now apply A.
Qed.

Lemma fold_larger (f : list nat -> Q) ps p : In p ps -> Q2R (f p) <= Q2R (fold_right (fun p => larger (f p)) 0%Q ps).
Proof.
  induction ps as [|q ps IH]; cbn [fold_right]; [easy|]. intros [<-|I]; [apply larger_left|].
  eapply Rle_trans; [now apply IH|apply larger_right].
Qed.

Lemma by_vertices_bounds groups terms r u v : weighted terms -> inside b u v -> by_vertices groups terms = Some r ->
  all_moved n terms u v <= Q2R r.
Proof.
  intros W I E. unfold by_vertices in E. destruct (monomials fs terms) as [ms|] eqn:M; [|discriminate].
  destruct (distinct (concat groups) && all_placed groups && forallb (fun g => is_group g (items ms)) groups) eqn:C; [|discriminate].
  injection E as <-. apply andb_prop in C as [C G]. apply andb_prop in C as [D A].
  destruct (monomials_right _ _ u v W I M) as [P ->].
  assert (PW : positive_weights ms).
  { apply Forall_impl with (2 := P). intros m (_ & _ & Q). now apply positive_weight. }
  set (total := add (alone ms) _).
  apply (vertices_bound n ms monomial_move (seq 0 (2 * length fs)) (fun i => - limit i) limit (Q2R total) PW).
  - apply monomial_proper.
  - intros i _. apply Forall_impl with (2 := P). intros m (N & _). now apply monomial_affine.
  - intros y Y _.
    set (turns := fun j => may_turn j && if Req_EM_T (y (at_other j)) (y (at_own j)) then false else true).
    rewrite (vertex_cost ms y turns P).
    + destruct (counted (items ms) groups turns (distinct_nodup _ D) G) as (p & Q & ->).
      { intros j T. apply andb_prop in T as [T _]. unfold all_placed in A. rewrite forallb_forall in A.
        destruct (Nat.lt_ge_cases j (length fs)) as [J|J].
        - specialize (A j ltac:(apply in_seq; lia)). rewrite T in A. cbn in A. now apply member_in.
        - exfalso. unfold may_turn, factor in T. rewrite nth_overflow in T by exact J. discriminate. }
      unfold total. rewrite Q2R_add. apply Rplus_le_compat_l. rewrite <- turned_cost_right.
      apply (fold_larger (fun p => turned_cost (member p) (items ms)) _ _ Q).
    + intros j J.
      assert (Y1 : forall i, (i < 2 * length fs)%nat -> y i = - limit i \/ y i = limit i) by (intros i L; apply Y, in_seq; lia).
      assert (L0 : limit (at_own j) = IZR (largest_size j)) by (unfold limit, at_own; now rewrite Nat.div2_double).
      assert (L1 : limit (at_other j) = IZR (largest_size j)).
      { unfold limit, at_other. destruct (may_turn j); [|now rewrite Nat.div2_double].
        replace (2 * j + 1)%nat with (S (2 * j)) by lia. now rewrite Nat.div2_succ_double. }
      assert (S : 0 <= IZR (largest_size j)).
      { apply IZR_le. unfold largest_size. destruct (reach_within b u v (factor j) I) as (K & _ & _). apply size_bounds in K. lia. }
      assert (Yo := Y1 (at_own j) ltac:(unfold at_own; lia)).
      assert (Yt := Y1 (at_other j) ltac:(unfold at_other; destruct (may_turn j); lia)).
      rewrite L0 in Yo. rewrite L1 in Yt. split.
      * destruct Yo as [-> | ->]; rewrite ?Rabs_Ropp; now apply Rabs_pos_eq.
      * unfold turns. destruct (Req_EM_T (y (at_other j)) (y (at_own j))) as [Q|Q]; [now rewrite andb_false_r|].
        unfold at_other in Q, Yt |- *. destruct (may_turn j); cbn [andb]; [|exfalso; now apply Q].
        destruct Yo as [U|U], Yt as [V|V]; rewrite U, V in *; try (exfalso; now apply Q); lra.
  - intros i. now apply point_within.
Qed.
End AtVertices.

(** ** Certificates *)

Inductive cert :=
  | Missing  (** no claim *)
  | Empty  (** no two units of this case are in the box *)
  | ByRanges
  | ByVertices (factors : list number) (groups : list (list nat))
  | Split (first : bool) (place : nat) (at_most : Z) (below above : cert)  (** a column of the one unit or the other *)
  | Parts (here : list bool) (these others : cert).  (** some terms, and all others *)

Definition not_above (z : Z) (r : range) : range := Range (low r) (Z.min (high r) z).
Definition above (z : Z) (r : range) : range := Range (Z.max (low r) (z + 1)) (high r).

Definition narrow (first : bool) (f : range -> range) (s : side) : side :=
  if shared s then Side (f (own s)) (f (other s)) true
  else if first then Side (f (own s)) (other s) false else Side (own s) (f (other s)) false.

Fixpoint change_at (f : side -> side) (b : box) (i : nat) : box :=
  match b, i with [], _ => [] | s :: r, O => f s :: r | s :: r, S k => s :: change_at f r k end.

Lemma at_changed f b i j : at_column (change_at f b i) j = at_column b j \/ (j = i /\ at_column (change_at f b i) j = f (at_column b j)).
Proof.
  unfold at_column. revert i j. induction b as [|s b IH]; intros i j; [now left|].
  destruct i as [|i]; cbn [change_at].
  - destruct j; [right; split; reflexivity|now left].
  - destruct j as [|j]; [now left|]. cbn [nth]. destruct (IH i j) as [E|[-> E]]; [now left|right; split; [reflexivity|exact E]].
Qed.

Lemma narrow_inside (first : bool) f b i u v : inside b u v ->
  (forall r, within_range (if first then u i else v i) r -> within_range (if first then u i else v i) (f r)) ->
  inside (change_at (narrow first f) b i) u v.
Proof.
  intros I F j. destruct (I j) as (A & B & S). destruct (at_changed (narrow first f) b i j) as [E|[-> E]]; rewrite E; [auto|].
  unfold narrow. destruct (shared (at_column b i)) eqn:C; cbn [own other shared].
  - specialize (S eq_refl). replace (if first then u i else v i) with (u i) in F by (destruct first; congruence).
    rewrite <- S in *. split; [now apply F|]. split; [now apply F|]. reflexivity.
  - destruct first; cbn [own other shared]; (split; [auto|split; [auto|discriminate]]).
Qed.

Fixpoint select (here : list bool) (terms : list (term * Q)) {struct terms} : list (term * Q) * list (term * Q) :=
  match terms, here with
  | [], _ => ([], [])
  | _, [] => ([], terms)
  | t :: rest, h :: more => let s := select more rest in if h then (t :: fst s, snd s) else (fst s, t :: snd s)
  end.

Lemma select_moved n here terms u v :
  all_moved n terms u v = all_moved n (fst (select here terms)) u v + all_moved n (snd (select here terms)) u v.
Proof.
  unfold all_moved. revert here. induction terms as [|[t w] rest IH]; intros here; [cbn; lra|].
  destruct here as [|[] more]; cbn [select fst snd moved]; [ring|rewrite (IH more); ring..].
Qed.

Lemma select_weighted here terms : weighted terms -> weighted (fst (select here terms)) /\ weighted (snd (select here terms)).
Proof.
  intros W. revert here. induction W as [|t rest P W IH]; intros here; [split; constructor|].
  destruct here as [|h more]; cbn [select fst snd]; [split; [constructor|now constructor]|].
  destruct (IH more). destruct h; cbn [fst snd]; split; try constructor; assumption.
Qed.

(** The bound that follows from a certificate, or none. *)
Fixpoint result (n : norm) (impossible : box -> bool) (terms : list (term * Q)) (b : box) (c : cert) : option Q :=
  match c with
  | Missing => None
  | Empty => if impossible b then Some 0%Q else None
  | ByRanges => Some (by_ranges n b terms)
  | ByVertices factors groups => by_vertices n b factors groups terms
  | Split first i z l r =>
      match result n impossible terms (change_at (narrow first (not_above z)) b i) l with
      | Some p => match result n impossible terms (change_at (narrow first (above z)) b i) r with
                  | Some q => Some (larger p q) | None => None end
      | None => None
      end
  | Parts here these others =>
      let s := select here terms in
      match result n impossible (fst s) b these with
      | Some p => match result n impossible (snd s) b others with Some q => Some (add p q) | None => None end
      | None => None
      end
  end.

(** What [result] computes is a bound, for all pairs of units in the box that are of this case. *)
Theorem result_bounds n impossible (this : unit -> unit -> Prop) terms b c r u v : weighted terms ->
  (forall d, impossible d = true -> inside d u v -> ~ this u v) -> this u v -> inside b u v ->
  result n impossible terms b c = Some r -> all_moved n terms u v <= Q2R r.
Proof.
  intros W E T. revert terms b r W. induction c as [| | |fs gs|first i z l L h H|here p P o O]; intros terms b r W I R; cbn [result] in R.
  - discriminate.
  - destruct (impossible b) eqn:F; [exfalso; now apply (E b F I)|discriminate].
  - injection R as <-. now apply by_ranges_bounds.
  - now apply (by_vertices_bounds n b fs gs terms).
  - destruct (result n impossible terms (change_at (narrow first (not_above z)) b i) l) as [p|] eqn:A; [|discriminate].
    destruct (result n impossible terms (change_at (narrow first (above z)) b i) h) as [q|] eqn:B; [|discriminate].
    injection R as <-. destruct (Z.le_gt_cases (if first then u i else v i) z) as [C|C].
    + eapply Rle_trans; [apply (L _ _ _ W) with (2 := A)|apply larger_left]. apply narrow_inside; [exact I|].
      intros s S. unfold within_range, not_above in *. cbn [low high]. lia.
    + eapply Rle_trans; [apply (H _ _ _ W) with (2 := B)|apply larger_right]. apply narrow_inside; [exact I|].
      intros s S. unfold within_range, above in *. cbn [low high]. lia.
  - destruct (select_weighted here terms W) as [W1 W2]. rewrite (select_moved n here terms).
    destruct (result n impossible (fst (select here terms)) b p) as [x|] eqn:A; [|discriminate].
    destruct (result n impossible (snd (select here terms)) b o) as [y|] eqn:B; [|discriminate].
    injection R as <-. rewrite Q2R_add. apply Rplus_le_compat; eauto.
Qed.

(** The bound, to the power of the norm. *)
Definition allowed (n : norm) (bound : Q) : Q := match n with l1 => bound | l2 => (bound * bound)%Q end.

Lemma allowed_most n bound : Q2R (allowed n bound) = most n bound.
Proof. destruct n; cbn [allowed most]; [reflexivity|]. rewrite Q2R_mult. ring. Qed.

Definition proves (n : norm) (impossible : box -> bool) (terms : list (term * Q)) (b : box) (bound : Q) (c : cert) : bool :=
  match result n impossible terms b c with Some r => Qle_bool r (allowed n bound) | None => false end.

Lemma proves_bounds n impossible (this : unit -> unit -> Prop) terms b bound c u v : weighted terms ->
  (forall d, impossible d = true -> inside d u v -> ~ this u v) -> this u v -> inside b u v ->
  proves n impossible terms b bound c = true -> all_moved n terms u v <= most n bound.
Proof.
  intros W E T I P. unfold proves in P. destruct (result n impossible terms b c) as [r|] eqn:R; [|discriminate].
  eapply Rle_trans; [now apply (result_bounds n impossible this terms b c r u v W E T I R)|].
  rewrite <- allowed_most. apply Qle_Rle. now apply Qle_bool_iff.
Qed.
