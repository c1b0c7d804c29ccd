(** * The ledger's automaton

    [docs/proofs/ledger.md]: grant, debit and release of a request, replays, and crashes at any step. What is on disk
    is the list of entries; what a process has in memory is lost in a crash. *)

From Coq Require Import ZArith List Lia Bool Arith.
Import ListNotations.

(** Requests and answers are numbers; a price is a whole number of the smallest unit. *)
Inductive entry := Grant (request price : nat) | Debit (request : nat) | Release (request answer : nat).

(** Entries newest first; answers that anyone has seen; a noisy answer that a process has drawn and not stored. *)
Record state := State { entries : list entry; seen : list (nat * nat); drawn : list (nat * nat) }.

Definition granted (es : list entry) (r : nat) : bool :=
  existsb (fun e => match e with Grant s _ => s =? r | _ => false end) es.
Definition debited (es : list entry) (r : nat) : bool :=
  existsb (fun e => match e with Debit s => s =? r | _ => false end) es.
Fixpoint stored (es : list entry) (r : nat) : option nat :=
  match es with
  | [] => None
  | Release s a :: rest => if s =? r then Some a else stored rest r
  | _ :: rest => stored rest r
  end.

(** The sum of all grants, used or not. *)
Fixpoint spent (es : list entry) : nat :=
  match es with [] => 0 | Grant _ p :: rest => p + spent rest | _ :: rest => spent rest end.
(** The price of a request, 0 where it has no grant. *)
Fixpoint price_of (es : list entry) (r : nat) : nat :=
  match es with
  | [] => 0
  | Grant s p :: rest => if s =? r then p else price_of rest r
  | _ :: rest => price_of rest r
  end.

Inductive step (budget : nat) : state -> state -> Prop :=
  | grants es sn dr r p : granted es r = false -> p + spent es <= budget ->
      step budget (State es sn dr) (State (Grant r p :: es) sn dr)
  | debits es sn dr r : granted es r = true -> debited es r = false ->
      step budget (State es sn dr) (State (Debit r :: es) sn dr)
  | draws es sn dr r a : debited es r = true -> stored es r = None ->
      step budget (State es sn dr) (State es sn ((r, a) :: dr))
  | stores es sn dr r a : In (r, a) dr -> debited es r = true -> stored es r = None ->
      step budget (State es sn dr) (State (Release r a :: es) sn dr)
  | replays es sn dr r a : stored es r = Some a ->  (* also how the one who stored returns the answer *)
      step budget (State es sn dr) (State es ((r, a) :: sn) dr)
  | crashes es sn dr : step budget (State es sn dr) (State es sn []).

Inductive reachable (budget : nat) : state -> Prop :=
  | opened : reachable budget (State [] [] [])
  | stepped s t : reachable budget s -> step budget s t -> reachable budget t.

Definition sound (budget : nat) (s : state) : Prop :=
  spent (entries s) <= budget
  /\ (forall r, debited (entries s) r = true -> granted (entries s) r = true)
  /\ (forall r a, stored (entries s) r = Some a -> debited (entries s) r = true)
  /\ (forall r a, In (r, a) (seen s) -> stored (entries s) r = Some a).

Lemma reachable_sound budget s : reachable budget s -> sound budget s.
Proof.
  induction 1 as [|s t R IH S]; [repeat split; cbn; intros; try lia; try discriminate; contradiction|].
  destruct S; destruct IH as (A & B & C & D); unfold sound; cbn [entries seen] in *; repeat split; try assumption;
    try (cbn [spent]; lia).
  - intros q H1. change (granted (Grant r p :: es) q) with ((r =? q) || granted es q). rewrite (B q H1). apply orb_true_r.
  - intros q H1. change (debited (Debit r :: es) q) with ((r =? q) || debited es q) in H1.
    destruct (Nat.eqb_spec r q); [subst; exact H|]. now apply B.
  - intros q b H1. change (debited (Debit r :: es) q) with ((r =? q) || debited es q).
    change (stored (Debit r :: es) q) with (stored es q) in H1. rewrite (C q b H1). apply orb_true_r.
  - intros q b H2. cbn [stored] in H2. change (debited (Release r a :: es) q) with (debited es q).
    destruct (Nat.eqb_spec r q); [subst; assumption|]. now apply (C q b).
  - intros q b I. cbn [stored]. destruct (Nat.eqb_spec r q); [|now apply D].
    subst. rewrite (D q b I) in *. discriminate.
  - intros q b [E|I]; [injection E as E1 E2; subst; exact H|now apply D].
Qed.

(** Whatever happens, in any order and with any crashes, all grants together stay within the budget. *)
Theorem never_beyond_budget budget s : reachable budget s -> spent (entries s) <= budget.
Proof. intros R. apply (reachable_sound budget s R). Qed.

(** An answer that was seen had been granted and debited. *)
Theorem debit_first budget s r a : reachable budget s -> In (r, a) (seen s) ->
  granted (entries s) r = true /\ debited (entries s) r = true.
Proof. intros R I. destruct (reachable_sound budget s R) as (_ & B & C & D). specialize (C r a (D r a I)). auto. Qed.

(** A request has one answer, however often it is asked and whatever crashed between. *)
Theorem one_answer budget s r a b : reachable budget s -> In (r, a) (seen s) -> In (r, b) (seen s) -> a = b.
Proof.
  intros R I J. destruct (reachable_sound budget s R) as (_ & _ & _ & D).
  pose proof (D r a I) as P. rewrite (D r b J) in P. now injection P.
Qed.

Fixpoint total_price (es : list entry) (rs : list nat) : nat :=
  match rs with [] => 0 | r :: rest => price_of es r + total_price es rest end.

Lemma total_price_spent es : forall rs, NoDup rs -> total_price es rs <= spent es.
Proof.
  induction es as [|[s p|s|s b] es IH]; intros rs N; cbn [spent].
  - clear N. induction rs; cbn; lia.
  - assert (K : total_price (Grant s p :: es) rs <= p + total_price es rs /\
      (~ In s rs -> total_price (Grant s p :: es) rs = total_price es rs)).
    { induction N as [|r rs X N K]; [cbn; lia|]. destruct K as [K1 K2]. cbn [total_price price_of].
      destruct (Nat.eqb_spec s r).
      - subst s. rewrite (K2 X). split; [lia|]. intros Y. exfalso. apply Y. now left.
      - split; [lia|]. intros Y. rewrite K2; [lia|]. intros Z. apply Y. now right. }
    specialize (IH rs N). lia.
  - specialize (IH rs N). assert (E : total_price (Debit s :: es) rs = total_price es rs); [|lia].
    clear. induction rs; cbn [total_price price_of]; congruence.
  - specialize (IH rs N). assert (E : total_price (Release s b :: es) rs = total_price es rs); [|lia].
    clear. induction rs; cbn [total_price price_of]; congruence.
Qed.

(** The prices of any different requests, so of all whose answers were seen, add up to no more than the budget. *)
Theorem never_under_counted budget s rs : reachable budget s -> NoDup rs -> total_price (entries s) rs <= budget.
Proof. intros R N. pose proof (total_price_spent (entries s) rs N). pose proof (never_beyond_budget budget s R). lia. Qed.
