(** * Factors that play the same part are counted, not enumerated

    At a vertex, a product with its weight costs a fixed amount where an odd number of its factors turn. Factors that can
    change places among all products are a group: only how many of a group turn counts. *)

From Coq Require Import Reals QArith Qreals List Lia Lra Bool Arith.
From dpcausal Require Import Vertices.
Import ListNotations.
Open Scope R_scope.

(** What a product costs if it turns, and its factors. *)
Definition item : Type := Q * list nat.

Fixpoint turned (turns : nat -> bool) (items : list item) : R :=
  match items with
  | [] => 0
  | (q, factors) :: rest => (if odd_turns turns factors then Q2R q else 0) + turned turns rest
  end.

Lemma odd_turns_ext s t factors : (forall j, s j = t j) -> odd_turns s factors = odd_turns t factors.
Proof. intros H. induction factors; cbn [odd_turns]; [reflexivity|]. now rewrite H, IHfactors. Qed.

Lemma turned_ext s t items : (forall j, s j = t j) -> turned s items = turned t items.
Proof.
  intros H. induction items as [|[q factors] rest IH]; cbn [turned]; [reflexivity|].
  now rewrite IH, (odd_turns_ext s t factors H).
Qed.

(** ** Changing places *)

Definition swap (a b j : nat) : nat := if Nat.eqb j a then b else if Nat.eqb j b then a else j.

Fixpoint insert (x : nat) (l : list nat) : list nat :=
  match l with [] => [x] | y :: r => if Nat.leb x y then x :: l else y :: insert x r end.
Definition sort (l : list nat) : list nat := fold_right insert [] l.

Lemma odd_turns_insert t x l : odd_turns t (insert x l) = xorb (t x) (odd_turns t l).
Proof.
  induction l as [|y r IH]; cbn [insert odd_turns]; [reflexivity|].
  destruct (Nat.leb x y); cbn [odd_turns]; [reflexivity|]. rewrite IH.
  destruct (t x), (t y), (odd_turns t r); reflexivity.
Qed.

Lemma odd_turns_sort t l : odd_turns t (sort l) = odd_turns t l.
Proof.
  induction l as [|x r IH]; [reflexivity|]. change (sort (x :: r)) with (insert x (sort r)).
  rewrite odd_turns_insert, IH. reflexivity.
Qed.

Definition swap_item (a b : nat) (i : item) : item := (fst i, sort (map (swap a b) (snd i))).

Lemma turned_swap a b t items : turned (fun j => t (swap a b j)) items = turned t (map (swap_item a b) items).
Proof.
  induction items as [|[q factors] rest IH]; cbn [turned map swap_item fst snd]; [reflexivity|].
  rewrite IH, odd_turns_sort. f_equal.
  assert (E : odd_turns (fun j => t (swap a b j)) factors = odd_turns t (map (swap a b) factors)); [|now rewrite E].
  induction factors; cbn [odd_turns map]; [reflexivity|]. now rewrite IHfactors.
Qed.

Fixpoint same_factors (a b : list nat) : bool :=
  match a, b with [], [] => true | x :: a', y :: b' => Nat.eqb x y && same_factors a' b' | _, _ => false end.

Lemma same_factors_equal a b : same_factors a b = true -> a = b.
Proof.
  revert b. induction a as [|x a IH]; intros [|y b] E; try discriminate; [reflexivity|].
  apply andb_prop in E as [E F]. apply Nat.eqb_eq in E. f_equal; auto.
Qed.

Definition same_item (i j : item) : bool := same_factors (snd i) (snd j) && Qeq_bool (fst i) (fst j).

Fixpoint without (i : item) (items : list item) : option (list item) :=
  match items with
  | [] => None
  | j :: rest => if same_item i j then Some rest else match without i rest with Some r => Some (j :: r) | None => None end
  end.

Fixpoint permuted (items others : list item) : bool :=
  match items with
  | [] => match others with [] => true | _ => false end
  | i :: rest => match without i others with Some r => permuted rest r | None => false end
  end.

Lemma without_turned t q factors items rest : without (q, factors) items = Some rest ->
  turned t items = (if odd_turns t factors then Q2R q else 0) + turned t rest.
Proof.
  revert rest. induction items as [|[p f] items IH]; cbn [without]; intros rest E; [discriminate|].
  destruct (same_item (q, factors) (p, f)) eqn:S.
  - injection E as <-. apply andb_prop in S as [S T]. cbn [fst snd] in *. apply same_factors_equal in S.
    apply Qeq_bool_eq, Qeq_eqR in T. subst. cbn [turned]. now rewrite T.
  - destruct (without (q, factors) items) as [r|]; [|discriminate]. injection E as <-. cbn [turned].
    rewrite (IH r eq_refl). ring.
Qed.

Lemma permuted_turned t items others : permuted items others = true -> turned t items = turned t others.
Proof.
  revert others. induction items as [|[q f] items IH]; cbn [permuted]; intros others E.
  - destruct others; [reflexivity|discriminate].
  - destruct (without (q, f) others) as [r|] eqn:W; [|discriminate].
    rewrite (without_turned t _ _ _ _ W). cbn [turned]. now rewrite (IH r E).
Qed.

(** Two factors change places, and all products with their costs are there as before. *)
Definition exchangeable (a b : nat) (items : list item) : bool := permuted (map (swap_item a b) items) items.

Lemma exchange a b items t : exchangeable a b items = true -> turned (fun j => t (swap a b j)) items = turned t items.
Proof. intros E. rewrite turned_swap. now apply permuted_turned. Qed.

(** ** Groups *)

Fixpoint is_group (g : list nat) (items : list item) : bool :=
  match g with
  | a :: rest => match rest with b :: _ => exchangeable a b items && is_group rest items | [] => true end
  | [] => true
  end.

Definition member (p : list nat) (j : nat) : bool := existsb (Nat.eqb j) p.

Lemma member_in p j : member p j = true <-> In j p.
Proof.
  unfold member. rewrite existsb_exists. split; [intros (x & I & E); apply Nat.eqb_eq in E; now subst|].
  intros I. exists j. split; [exact I|apply Nat.eqb_refl].
Qed.

Section Groups.
Context (items : list item).

(** One that does not turn sinks behind those of its group that do. *)
Lemma sink g : forall a t k, NoDup (a :: g) -> is_group (a :: g) items = true -> t a = false ->
  (forall j, In j g -> t j = member (firstn k g) j) ->
  exists s, turned t items = turned s items /\ (forall j, ~ In j (a :: g) -> s j = t j)
    /\ (forall j, In j (a :: g) -> s j = member (firstn (min k (length g)) (a :: g)) j).
Proof.
  induction g as [|b g IH]; intros a t k N G A S.
  - exists t. rewrite Nat.min_0_r. split; [reflexivity|]. split; [reflexivity|]. intros j [<-|[]]. now rewrite A.
  - destruct k as [|k].
    + exists t. split; [reflexivity|]. split; [reflexivity|]. intros j [<-|I]; cbn; [exact A|]. now apply S.
    + apply andb_prop in G as [E G]. inversion N as [|x l NA NB]. subst. inversion NB as [|x l NC ND]. subst.
      assert (B : t b = true) by (rewrite S by (now left); apply member_in; now left).
      assert (AB : a <> b) by (intros ->; apply NA; now left).
      set (t1 := fun j => t (swap a b j)).
      assert (T1 : t1 a = true) by (unfold t1, swap; now rewrite Nat.eqb_refl).
      assert (T2 : t1 b = false).
      { unfold t1, swap. destruct (Nat.eqb_spec b a); [congruence|]. now rewrite Nat.eqb_refl. }
      assert (T3 : forall j, j <> a -> j <> b -> t1 j = t j).
      { intros j J K. unfold t1, swap. destruct (Nat.eqb_spec j a), (Nat.eqb_spec j b); congruence. }
      destruct (IH b t1 k NB G T2) as (s & Q & O & R).
      { intros j J. assert (j <> b) by (intros ->; contradiction).
        rewrite T3; [|intros ->; apply NA; now right|assumption].
        rewrite S by (now right). cbn. destruct (Nat.eqb_spec j b); [contradiction|reflexivity]. }
      exists s. split; [rewrite <- (exchange a b items t E); exact Q|]. split.
      * intros j J. rewrite O by (intros C; apply J; now right).
        apply T3; intros ->; apply J; [now left|right; now left].
      * intros j J. cbn [length Nat.min firstn]. unfold member. cbn [existsb].
        destruct (Nat.eqb_spec j a) as [->|D]; [cbn; rewrite O by exact NA; exact T1|].
        destruct J as [<-|J]; [congruence|]. cbn [orb]. now apply R.
Qed.

Lemma sorted g : forall t, NoDup g -> is_group g items = true ->
  exists s k, turned t items = turned s items /\ (forall j, ~ In j g -> s j = t j)
    /\ (forall j, In j g -> s j = member (firstn k g) j) /\ (k <= length g)%nat.
Proof.
  induction g as [|a g IH]; intros t N G; [exists t, 0%nat; repeat split; easy|].
  inversion N as [|x l NA NB]. subst.
  assert (G' : is_group g items = true) by (destruct g; [reflexivity|]; now apply andb_prop in G).
  destruct (IH t NB G') as (s & k & E & O & R & L).
  destruct (s a) eqn:A.
  - exists s, (S k). repeat split; [exact E| | |cbn; lia].
    + intros j J. apply O. intros C. apply J. now right.
    + intros j J. cbn [firstn]. unfold member. cbn [existsb]. destruct (Nat.eqb_spec j a) as [->|D]; [exact A|].
      destruct J as [<-|J]; [congruence|]. now apply R.
  - destruct (sink g a s k N G A R) as (s' & E' & O' & R'). exists s', (min k (length g)).
    repeat split; [congruence| |exact R'|cbn; lia].
    intros j J. rewrite O' by exact J. apply O. intros C. apply J. now right.
Qed.

Definition prefixes (g : list nat) : list (list nat) := map (fun k => firstn k g) (seq 0 (S (length g))).

(** Which factors turn: of each group the first ones. *)
Fixpoint patterns (groups : list (list nat)) : list (list nat) :=
  match groups with
  | [] => [[]]
  | g :: rest => flat_map (fun p => map (fun q => p ++ q) (patterns rest)) (prefixes g)
  end.

Lemma patterns_within groups p : In p (patterns groups) -> incl p (concat groups).
Proof.
  revert p. induction groups as [|g rest IH]; cbn [patterns concat]; intros p I.
  - destruct I as [<-|[]]. intros j [].
  - apply in_flat_map in I as (a & A & B). apply in_map_iff in B as (q & <- & Q).
    apply in_map_iff in A as (k & <- & _). intros j J. apply in_app_iff in J as [J|J]; apply in_app_iff; [left|right].
    + rewrite <- (firstn_skipn k g). apply in_app_iff. now left.
    + now apply (IH q).
Qed.

Lemma concat_disjoint (g : list nat) rest j : NoDup (g ++ rest) -> In j g -> ~ In j rest.
Proof.
  induction g as [|a g IH]; cbn; intros N I C; [easy|]. inversion N as [|x l A B]. subst. destruct I as [<-|I].
  - apply A. apply in_app_iff. now right.
  - now apply IH.
Qed.

Theorem counted groups : forall t, NoDup (concat groups) -> forallb (fun g => is_group g items) groups = true ->
  (forall j, t j = true -> In j (concat groups)) ->
  exists p, In p (patterns groups) /\ turned t items = turned (member p) items.
Proof.
  assert (M : forall groups t, NoDup (concat groups) -> forallb (fun g => is_group g items) groups = true ->
    exists p s, In p (patterns groups) /\ turned t items = turned s items
      /\ (forall j, In j (concat groups) -> s j = member p j) /\ (forall j, ~ In j (concat groups) -> s j = t j)).
  { clear groups. induction groups as [|g rest IH]; cbn [concat forallb patterns]; intros t N G.
    - exists [], t. repeat split; [now left|easy].
    - apply andb_prop in G as [G R].
      assert (NG : NoDup g) by (clear - N; induction g; [constructor|]; inversion N; subst; constructor; [|auto];
        intros C; apply H1; apply in_app_iff; now left).
      assert (NR : NoDup (concat rest)) by (clear - N; induction g; [exact N|]; inversion N; auto).
      destruct (sorted g t NG G) as (s & k & E & O & S & L).
      destruct (IH s NR R) as (p & s' & P & E' & S' & O').
      exists (firstn k g ++ p), s'. repeat split.
      + apply in_flat_map. exists (firstn k g). split.
        * unfold prefixes. apply in_map_iff. exists k. split; [reflexivity|]. apply in_seq. lia.
        * apply in_map_iff. now exists p.
      + congruence.
      + intros j J. unfold member. rewrite existsb_app. fold (member (firstn k g) j) (member p j).
        apply in_app_iff in J as [J|J].
        * assert (C := concat_disjoint g (concat rest) j N J). rewrite O' by exact C. rewrite S by exact J.
          destruct (member p j) eqn:B; [|now rewrite orb_false_r].
          apply member_in in B. exfalso. apply C. now apply (patterns_within rest p P).
        * rewrite S' by exact J. destruct (member (firstn k g) j) eqn:B; [|reflexivity].
          apply member_in in B. exfalso. apply (concat_disjoint g (concat rest) j N); [|exact J].
          rewrite <- (firstn_skipn k g). apply in_app_iff. now left.
      + intros j J. rewrite O', O; [reflexivity| |]; intros C; apply J; apply in_app_iff; [now left|now right]. }
  intros t N G T. destruct (M groups t N G) as (p & s & P & E & S & O). exists p. split; [exact P|].
  rewrite E. apply turned_ext. intros j. destruct (in_dec Nat.eq_dec j (concat groups)) as [I|I]; [now apply S|].
  rewrite O by exact I. destruct (t j) eqn:A; [exfalso; now apply I, T|].
  destruct (member p j) eqn:B; [|reflexivity]. apply member_in in B. exfalso. apply I.
  now apply (patterns_within groups p P).
Qed.
End Groups.
