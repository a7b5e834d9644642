"""The planted mistakes by name: where each is looked for, by whom it must be caught, and within how many seeds."""

from quorate.api_specs.cluster import ChoiceRule, ClockSettings
from tests.sim.planted import deciders, fronts, replicas
from tests.sim.planted.plant import Hint, Plant

QUEUE = ("queue/q",)
REGISTER = ("register/r",)
DICTIONARY = ("dictionary/d",)
H = Hint
MANY_DEQ = {"Enq": 3, "Deq": 3, "Peek": 0, "Size": 0, "Read": 3, "Write": 3, "Cas": 0, "PutIfAbsent": 0, "Delete": 0, "Items": 0}
ROUGH = {"loss": 0.1, "tail": 0.3, "tail_us_max": 20_000, "cuts": 4, "lazy_loss": 1.0}
BUSY = {"weights": MANY_DEQ, "fronts": 4, "processes": 1, "operations": 10, "think_us": 1000, "deadline_s": 1.0}
def majority(adt="queue"):
    return chosen(adt, (0, 2), (2, 2))
def chosen(adt, blind, decide, **how):
    b = {"queue": ["Enq/Ok"], "register": ["Write/Ok"], "dictionary": ["Put/Ok", "Delete/Ok"]}[adt]
    d = {"queue": ["Deq/Ok"], "register": ["Cas/Ok"], "dictionary": ["PutIfAbsent/Ok", "Cas/Ok"]}[adt]
    return (ChoiceRule(f"{adt}/*", dict.fromkeys(b, blind) | dict.fromkeys(d, decide), **how),)
def only(**weights):
    return {"weights": dict.fromkeys(MANY_DEQ, 0) | weights}
RM = H(QUEUE, majority(), faults=ROUGH, fields=BUSY)
RK = H(QUEUE, majority(), faults=ROUGH, fields=BUSY | {"keyed": 1.0})
RRM = H(REGISTER, majority("register"), faults=ROUGH, fields=BUSY)
CAS = H(REGISTER, majority("register"), faults=ROUGH, fields=BUSY | only(Read=2, Write=3, Cas=3))
SIZE = H(QUEUE, majority(), faults={}, fields=BUSY | only(Enq=3, Deq=3, Size=3))
PEEK = H(QUEUE, majority(), faults={"tail": .3}, fields=BUSY | only(Enq=3, Deq=2, Peek=3))
ONE = H(QUEUE, chosen("queue", (0,1), (3,1)), faults={"commit_us_max": 5000}, fields=BUSY)
SKEWED = H(QUEUE, chosen("queue", (0,1), (3,1)), clock=ClockSettings(0.0), faults={"client_skew_us": 1_000_000, "replica_skew_us": 0, "clock_steps": 0, "crashes": 0}, fields={"is_exact": True, "fronts": 3, "processes": 1, "operations": 10})
SKEWED2 = H(QUEUE, chosen("queue", (0,1), (3,1)), clock=ClockSettings(0.003), faults={"client_skew_us": 0, "replica_skew_us": 3_000, "clock_steps": 0, "crashes": 0}, fields={"is_exact": True, "fronts": 3, "processes": 1, "operations": 10})
BYQ = H(QUEUE, chosen("queue", (2,2), (2,2), ordering="quorum"), faults={"client_skew_us": 1_000_000, "replica_skew_us": 0}, fields={"is_exact": True, "fronts": 3, "processes": 1, "operations": 10})
RREAD = H(REGISTER, chosen("register", (0,2), (2,2)), clock=ClockSettings(0.003), faults={"client_skew_us": 0, "replica_skew_us": 3_000}, fields={"is_exact": True, "fronts": 3, "processes": 1, "operations": 10} | only(Read=3, Write=3))
SLOW = {"loss": 0.25, "tail": 0.3, "tail_us_max": 300_000, "slow_links": 6, "cuts": 6, "lazy_loss": 1.0, "cancels": 0.2, "commit_us_max": 0}
BB = {"fronts": 4, "processes": 1, "operations": 20, "think_us": 1000, "deadline_s": 1.0}
T1 = H(REGISTER, chosen("register", (0,3), (3,3)), 5, faults=SLOW, fields=BB | only(Read=4, Write=2))
T2 = H(REGISTER, chosen("register", (0,2), (2,2)), 3, faults=SLOW, fields=BB | only(Read=4, Write=2))
T3 = H(REGISTER, chosen("register", (0,3), (3,3)), 5, faults=SLOW, fields=BB | only(Read=4, Cas=2))
T4 = H(QUEUE, chosen("queue", (0,3), (3,3)), 5, faults=SLOW, fields=BB | only(Enq=3, Deq=2, Size=2))
T5 = H(QUEUE, chosen("queue", (0,3), (3,3)), 5, faults=SLOW, fields=BB | only(Enq=3, Deq=3))
T6 = H(QUEUE, chosen("queue", (0,3), (1,3)), 3, faults=SLOW, fields=BB | only(Enq=3, Deq=3))
T7 = H(QUEUE, chosen("queue", (0,3), (1,3)), 3, faults=SLOW, fields=BB | only(Enq=3, Deq=3) | {"keyed": 1.0})
T8 = H(QUEUE, chosen("queue", (0,2), (2,2)), 3, faults=SLOW, fields=BB | only(Enq=3, Deq=3))
R = H(QUEUE, faults=ROUGH, fields=BUSY)
RR = H(REGISTER, faults=ROUGH, fields=BUSY)

PLANTS = (
    Plant("discard-at-accept", "", replicas.discard_at_accept, ("lost",), 60, "6.1", H(QUEUE)),
    Plant("late-entry-dropped", "", replicas.drop_late_entries, ("lost",), 60, "6.2", H(QUEUE)),
    Plant("fenced-so-stamped-anew", "", fronts.stamp_anew_when_fenced, ("taken twice",), 60, "6.3", H(QUEUE)),
    Plant("incomplete-taken-unnoted", "", deciders.take_incomplete_unnoted, ("taken twice",), 60, "6.4", H(QUEUE)),
    Plant("dequeues-merge", "", replicas.merge_without_ballots, ("taken twice",), 60, "6.5", H(QUEUE)),
    Plant("read-newest-seen", "", fronts.read_the_newest_seen, ("linearizable",), 60, "6.6", H(REGISTER)),
    Plant("empty-at-first-look", "", deciders.empty_at_first_look, ("linearizable",), 60, "6.7", H(QUEUE)),
    Plant("recovery-forgotten", "", fronts.forget_the_recovery, ("taken twice",), 60, "6.8", H(QUEUE)),
    Plant("adopted-into-the-log", "", replicas.adopted_into_the_log, ("lost",), 60, "6.9", H(QUEUE)),
    Plant("one-ballot-for-all-accepts", "", deciders.one_ballot_for_all_accepts, ("lost",), 60, "6.10", H(QUEUE)),
    Plant("clock-repeats", "", fronts.clock_repeats, ("lost",), 60, "6.11", H(QUEUE)),
    Plant("acknowledged-before-commit", "", replicas.acknowledge_before_the_commit, (), 60, hint=H(faults={"crashes": 4, "commit_us_max": 5000})),
    Plant("promise-not-persisted", "", replicas.ballot_not_persisted, (), 60, hint=H(faults={"crashes": 4})),
    Plant("fence-not-persisted", "", replicas.fence_not_persisted, (), 60, hint=H(faults={"crashes": 4})),
    Plant("accepted-not-persisted", "", replicas.accepted_not_persisted, (), 60, hint=H(faults={"crashes": 4})),
    Plant("restarted-clock-repeats", "", fronts.restarted_clock_repeats, (), 60, hint=H(QUEUE), setting=lambda: fronts.coarse_clocks()),
    Plant("choice-does-not-intersect", "", fronts.non_intersecting_choice, (), 60, hint=H(())),
    Plant("retry-under-a-new-key", "", fronts.retry_under_a_new_key, (), 60, hint=H(QUEUE, fields={"keyed": 1.0})),
    Plant("stale-owner-goes-on", "", deciders.go_on_after_the_turn_is_lost, (), 60, hint=H(QUEUE)),
    Plant("objects-share-a-fence", "", replicas.objects_share_a_fence, (), 60, hint=H((*QUEUE, *REGISTER, *DICTIONARY))),
    Plant("delta-skips-one", "", replicas.delta_skips_one, (), 60, hint=H()),
    Plant("log-of-an-earlier-moment", "", replicas.log_of_an_earlier_moment, (), 60, hint=H(faults={"commit_us_max": 5000})),
    Plant("replica-counted-twice", "", fronts.count_one_replica_twice, (), 60, hint=H(())),
    Plant("restamp-after-recovery", "", fronts.forget_that_it_recovered, (), 60, hint=H(QUEUE)),
    Plant("keyed-restamped-alone", "", fronts.stamp_keyed_anew_alone, (), 60, hint=H(QUEUE, fields={"keyed": 1.0})),
    Plant("write-back-to-one", "", fronts.write_back_to_one, (), 60, hint=H(REGISTER)),
    Plant("acknowledged-at-first-word", "", fronts.acknowledge_at_first_word, (), 60, hint=H(())),
    Plant("read-before-the-time", "", fronts.read_before_the_time, (), 60, hint=H(REGISTER)),
    Plant("read-at-one", "", fronts.read_at_one, (), 60, hint=H(REGISTER)),
    Plant("items-of-two-moments", "", fronts.items_of_two_moments, (), 60, hint=H(DICTIONARY)),
    Plant("size-at-first-look", "", fronts.size_at_first_look, (), 60, hint=H(QUEUE)),
    Plant("peek-only-reads", "", fronts.peek_only_reads, (), 60, hint=H(QUEUE)),
    Plant("no-commit-wait", "", fronts.no_commit_wait, (), 60, hint=H(QUEUE)),
    Plant("clock-without-bound", "", fronts.clock_without_bound, (), 60, hint=H(QUEUE)),
    Plant("clock-witnesses-nothing", "", fronts.clock_witnesses_nothing, (), 60, hint=H()),
    Plant("ambiguous-forgotten-at-once", "", deciders.forget_ambiguous_at_once, (), 60, hint=H(QUEUE)),
    Plant("one-key-remembered", "", deciders.remember_one_key, (), 60, hint=H(QUEUE, fields={"keyed": 1.0})),
    Plant("no-turns-remembered", "", deciders.remember_no_turns, (), 60, hint=H(QUEUE)),
    Plant("empty-from-the-cache", "", deciders.empty_from_the_cache, (), 60, hint=H(QUEUE)),
    Plant("proposed-forgotten", "", deciders.forget_what_was_proposed, (), 60, hint=H(QUEUE)),
    Plant("doubtful-taken-for-lost", "", deciders.take_doubtful_for_lost, (), 60, hint=H(QUEUE)),
    Plant("all-believed-decided", "", deciders.believe_all_decided, (), 60, hint=H()),
    Plant("decided-by-one", "", deciders.decided_by_one, (), 60, hint=H()),
    Plant("accept-at-one", "", deciders.accept_at_one, (), 60, hint=H()),
    Plant("bound-of-one", "", deciders.bound_of_one, (), 60, hint=H(QUEUE)),
    Plant("swap-below-a-write", "", deciders.swap_below_a_write, (), 60, hint=H(REGISTER)),
    Plant("void-though-it-may-complete", "", deciders.void_though_it_may_complete, (), 60, hint=H(QUEUE)),
    Plant("recovered-not-adopted", "", deciders.recovered_is_not_adopted, (), 60, hint=H(QUEUE)),
    Plant("adopted-shown-twice", "", deciders.adopted_shown_twice, (), 60, hint=H(QUEUE)),
    Plant("lower-step-replaces", "", replicas.lower_step_replaces, (), 60, hint=H()),
    Plant("promise-not-checked-at-accept", "", replicas.accept_below_the_promise, (), 60, hint=H()),
    Plant("promise-refuses-nobody", "", replicas.promise_without_refusing, (), 60, hint=H()),
    Plant("fence-not-raised", "", replicas.fence_not_raised, (), 60, hint=H()),
    Plant("commit-forgets-all", "", replicas.commit_forgets_all, (), 60, hint=H()),
    Plant("marks-decide-anything", "", replicas.marks_decide_anything, (), 60, hint=H()),
)
BY_NAME = {plant.name: plant for plant in PLANTS}
