"""The planted mistakes by name: where each is looked for, which check must catch it, and within how many seeds.

Where chance meets a mistake too seldom there is a schedule. The numbers of seeds leave room: at the rate at which seeds
caught the mistake when it was entered, fewer than one reshuffle of all seeds in a thousand would miss it.
"""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from tests.sim.planted import (
    ages,
    catching,
    caught_up,
    changing,
    clocks,
    empties,
    forgetting,
    forwarding,
    fronts,
    full,
    keys,
    late,
    leases,
    outboxes,
    own,
    proposers,
    regressions,
    replicas,
    schedules,
    sizes,
    unasked,
    weak,
    wrong_clocks,
)
from tests.sim.planted.plant import Hint, Plant, Planting
from tests.sim.planted.worlds import (
    ALL_STORE,
    BUSY,
    BY_CLASS,
    BY_QUORUM,
    CAS,
    CATCHING_UP,
    CATCHING_UP_ROUGHLY,
    CRASHES,
    DICTIONARY,
    FEW,
    FEW_KEYED,
    FIVE,
    GOOD_CLOCKS,
    HISTORY,
    IN_REPLICAS,
    KEYED_QUEUE,
    LEAPING_KEYS,
    LEAPING_QUEUE,
    MOVING,
    PRIMARY,
    QUEUE,
    READ_ONE,
    REGISTER,
    RESTARTED,
    ROUGH_QUEUE,
    ROUGHER,
    ROUTED,
    SKEWED,
    SLOW_CAS,
    TWINS,
    TWINS_TOGETHER,
    WEAK,
    WHOLE_READS,
    chosen,
    only,
)


def by_hand(name: str, plant: Callable[[], Planting], schedule: Callable[[], None], *checks: str) -> Plant:
    """A mistake that a schedule shows, to the search for an order unless other checks are named."""
    return Plant(name, plant, checks or ("linearizable",), schedule=schedule)


def in_leased(name: str, plant: Callable[[], Planting], seeds: int, *checks: str, first: int = 1) -> Plant:
    """A mistake that one of these checks catches in the worlds with leases."""
    return Plant(name, plant, checks, seeds, worlds="leased", first=first)


def in_own(name: str, plant: Callable[[], Planting], seeds: int, *checks: str, first: int = 1) -> Plant:
    """A mistake that the search for an order catches in the worlds of a type of one's own, or another check."""
    return Plant(name, plant, ("linearizable", *checks), seeds, worlds="own", first=first)


def in_outboxes(
    name: str, plant: Callable[[], Planting], checks: tuple[str, ...], seeds: int = 60, first: int = 1
) -> Plant:
    """A mistake that a check catches in the worlds of a queue with outboxes."""
    return Plant(name, plant, checks, seeds, worlds="outbox", first=first)


def in_changes(
    name: str,
    plant: Callable[[], Planting],
    hint: Hint,
    *checks: str,
    worlds: str = "queues",
    seeds: int = 60,
    first: int = 1,
) -> Plant:
    """A mistake that one of these checks catches where the configuration changes."""
    return Plant(
        name,
        plant,
        ("linearizable", "lost", "size", "taken twice", *checks),
        seeds,
        hint,
        worlds=worlds,
        first=first,
    )


PLANTS: Final = (
    # DESIGN section 6, in its order.
    Plant(
        "discard-at-accept",
        replicas.discard_at_accept,
        ("linearizable",),
        schedule=schedules.undecided_horizon,
        origin="DESIGN 6.1",
    ),
    Plant(
        "late-entry-dropped",
        replicas.drop_late_entries,
        ("fences hold",),
        10,
        ROUGH_QUEUE,
        origin="DESIGN 6.2",
    ),
    Plant(
        "fenced-so-stamped-anew",
        fronts.stamp_anew_when_fenced,
        HISTORY,
        60,
        ROUGH_QUEUE,
        origin="DESIGN 6.3",
    ),
    Plant(
        "incomplete-taken-unnoted",
        proposers.take_incomplete_unnoted,
        HISTORY,
        70,
        ROUGH_QUEUE,
        origin="DESIGN 6.4",
    ),
    Plant(
        "dequeues-merge",
        replicas.merge_without_ballots,
        HISTORY,
        10,
        ROUGH_QUEUE,
        origin="DESIGN 6.5",
    ),
    Plant(
        "newest-seen-is-read",
        fronts.read_the_newest_seen,
        ("linearizable",),
        schedule=schedules.newest_value_at_one_replica,
        origin="DESIGN 6.6",
    ),
    Plant(
        "empty-at-first-look",
        proposers.empty_at_first_look,
        ("linearizable",),
        schedule=schedules.item_comes_while_another_goes,
        origin="DESIGN 6.7",
    ),
    Plant(
        "recovery-forgotten",
        fronts.forget_the_recovery,
        ("taken twice",),
        schedule=schedules.recovery_whose_answers_are_lost,
        origin="DESIGN 6.8",
    ),
    Plant(
        "adopted-into-the-log",
        replicas.adopted_into_the_log,
        ("linearizable",),
        schedule=schedules.adopted_below_a_horizon,
        origin="DESIGN 6.9",
    ),
    Plant(
        "one-ballot-for-all-accepts",
        proposers.one_ballot_for_all_accepts,
        ("one summary a ballot",),
        10,
        ROUGH_QUEUE,
        origin="DESIGN 6.10",
    ),
    Plant(
        "clock-repeats",
        clocks.clock_repeats,
        ("one entry a timestamp", "one use a timestamp", *HISTORY),
        10,
        replace(ROUGH_QUEUE, fields={**BUSY, **only(Enq=3, Deq=3, Size=1)}),
        origin="DESIGN 6.11",
    ),
    # Those that the issue names.
    Plant(
        "acknowledged-before-commit",
        replicas.acknowledge_before_the_commit,
        ("decided", "complete"),
        10,
        Hint(faults=CRASHES | {"commit_us_max": 5_000}),
    ),
    Plant(
        "ballot-not-persisted", replicas.ballot_not_persisted, ("promises rise",), 10, Hint(faults=CRASHES)
    ),
    Plant(
        "restarted-clock-repeats",
        clocks.restarted_clock_repeats,
        ("one entry a timestamp", "one use a timestamp", *HISTORY),
        10,
        RESTARTED,
    ),
    Plant("choice-does-not-intersect", fronts.non_intersecting_choice, HISTORY, 10, ROUGH_QUEUE),
    Plant("finals-exchanged", fronts.finals_exchanged, ("complete",), 5, BY_CLASS),
    Plant("retry-under-a-new-key", fronts.retry_under_a_new_key, HISTORY, 40, KEYED_QUEUE),
    Plant("stale-owner-goes-on", proposers.go_on_after_the_turn_is_lost, HISTORY, 10, ROUGH_QUEUE),
    Plant(
        "objects-share-a-fence",
        replicas.objects_share_a_fence,
        ("promises rise",),
        10,
        Hint((*QUEUE, *REGISTER, *DICTIONARY)),
    ),
    Plant("delta-skips-one", replicas.delta_skips_one, HISTORY, 10),
    Plant(
        "log-of-an-earlier-moment",
        replicas.log_of_an_earlier_moment,
        HISTORY,
        120,
        Hint(
            QUEUE,
            chosen("queue", *READ_ONE),
            faults=GOOD_CLOCKS | {"commit_us_max": 5_000},
            fields={**BUSY, **only(Enq=3, Deq=3)},
        ),
        first=58,
    ),
    Plant("replica-counted-twice", fronts.count_one_replica_twice, ("complete", "linearizable"), 30),
    # Further ones: promises of a replica.
    Plant("fence-not-persisted", replicas.fence_not_persisted, ("promises rise",), 10, Hint(faults=CRASHES)),
    Plant(
        "accepted-not-persisted",
        replicas.accepted_not_persisted,
        ("promises rise",),
        10,
        Hint(faults=CRASHES),
    ),
    Plant("fence-not-raised", replicas.fence_not_raised, ("promises rise", "fences hold"), 10),
    Plant("lower-step-replaces", replicas.lower_step_replaces, ("promises rise",), 10, ROUGH_QUEUE),
    Plant(
        "accept-below-the-promise",
        replicas.accept_below_the_promise,
        ("promises bind", *HISTORY),
        30,
        ROUGH_QUEUE,
    ),
    Plant("commit-forgets-all", replicas.commit_forgets_all, HISTORY, 10),
    Plant("mark-decides-another", replicas.marks_decide_anything, ("decided",), 100, first=29),
    *late.PLANTED,
    *forgetting.PLANTED,
    *full.PLANTED,
    by_hand("collected-without-a-floor", replicas.bury_without_floor, schedules.message_of_a_buried_life),
    # Blind operations and observations.
    by_hand(
        "keyed-stamped-anew-alone",
        fronts.stamp_keyed_anew_alone,
        schedules.key_at_two_front_ends,
        "taken twice",
    ),
    Plant("acknowledged-at-first-word", fronts.acknowledge_at_first_word, ("complete", "linearizable"), 20),
    by_hand("fenced-with-the-stored", fronts.take_what_neighbours_got, schedules.one_of_two_writes_is_fenced),
    by_hand("written-back-to-one", fronts.write_back_to_one, schedules.newest_value_at_one_replica),
    Plant("read-at-one", fronts.read_at_one, ("linearizable",), 50, Hint(REGISTER)),
    by_hand("read-before-the-time", fronts.read_before_the_time, schedules.value_from_the_future),
    Plant("items-of-two-moments", fronts.items_of_two_moments, ("linearizable",), 20, WHOLE_READS),
    Plant("page-to-the-last", fronts.page_to_the_last, ("linearizable",), 20, WHOLE_READS),
    Plant(
        "moving-keys-of-several-moments", sizes.moving_keys_of_several_moments, ("linearizable",), 40, MOVING
    ),
    Plant(
        "oldest-page-scanned",
        replicas.scan_the_oldest,
        ("linearizable", "answers"),
        10,
        replace(WHOLE_READS, faults=GOOD_CLOCKS | {"lazy_loss": 1.0}),
    ),
    by_hand("size-at-first-look", sizes.size_at_first_look, schedules.item_at_one_replica),
    *empties.PLANTED,
    *unasked.PLANTED,
    *wrong_clocks.PLANTED,
    by_hand("peek-only-reads", fronts.peek_only_reads, schedules.peek_while_an_older_entry_travels),
    by_hand("no-commit-wait", clocks.no_commit_wait, schedules.write_from_the_future),
    by_hand(
        "returned-within-the-microsecond",
        clocks.return_within_the_microsecond,
        regressions.two_writes_in_one_microsecond,
    ),
    by_hand(
        "wait-short-by-the-drift",
        clocks.wait_short_by_the_drift,
        regressions.write_by_a_clock_that_runs_fast,
    ),
    by_hand(
        "known-taken-for-settled",
        fronts.show_what_is_known,
        regressions.swap_at_one_replica_during_a_whole_read,
    ),
    by_hand(
        "floor-taken-for-the-end",
        fronts.take_a_floor_for_the_end,
        regressions.live_key_under_the_floor_of_a_burial,
    ),
    Plant(
        "stamped-anew-though-stored",
        fronts.begin_anew_though_stored,
        ("taken twice",),
        15,
        LEAPING_QUEUE,
        first=29,
    ),
    Plant("clock-bound-ignored", clocks.clock_without_bound, ("linearizable",), 30, SKEWED),
    Plant(
        "callers-clocks-in-replicas",
        clocks.go_by_callers_clocks_in_replicas,
        ("linearizable",),
        30,
        IN_REPLICAS,
    ),
    Plant(
        "stamped-below-what-is-seen", clocks.stamp_below_what_is_seen, ("linearizable", "lost"), 10, BY_QUORUM
    ),
    by_hand(
        "far-ahead-passed-over",
        clocks.pass_over_what_is_far_ahead,
        regressions.clocks_that_were_set_back,
        "linearizable",
        "answers",
    ),
    by_hand(
        "not-looked-for-what-is-ahead",
        clocks.never_look_for_what_is_ahead,
        regressions.clocks_that_were_set_back_without_reading,
    ),
    by_hand(
        "waited-for-what-is-ahead",
        clocks.wait_for_what_is_ahead,
        regressions.clocks_that_were_set_back_without_reading,
        "answers",
    ),
    by_hand(
        "never-set-back",
        clocks.never_set_back,
        regressions.clocks_set_right_beside_a_front_end_that_stays,
        "answers",
    ),
    by_hand(
        "given-ahead-stays",
        clocks.given_ahead_stays,
        regressions.clocks_set_right_beside_a_front_end_that_stays,
        "answers",
    ),
    by_hand(
        "looked-for-while-it-is-far",
        clocks.look_only_for_what_is_far_ahead,
        regressions.just_before_time_comes_to_what_was_ahead,
    ),
    by_hand(
        "told-only-while-it-is-far",
        clocks.told_only_while_it_is_far,
        regressions.told_late_of_what_was_ahead,
    ),
    by_hand(
        "looked-though-time-has-come",
        clocks.look_though_time_has_come,
        regressions.look_whose_reason_is_over,
        "answers",
    ),
    by_hand(
        "set-back-without-a-look",
        clocks.look_only_for_what_is_far_ahead,
        regressions.clock_set_back_below_what_it_stored,
    ),
    by_hand(
        "bound-by-the-own-clock-only",
        replicas.bound_by_the_own_clock_only,
        regressions.clocks_that_were_set_back,
        "answers",
    ),
    by_hand(
        "collected-before-all-confirm",
        fronts.bury_where_it_was_not_confirmed,
        schedules.deletion_that_one_replica_slept_through,
    ),
    by_hand("collected-while-young", fronts.bury_at_once, schedules.deletion_that_is_young),
    by_hand("collected-undecided", fronts.bury_what_is_not_decided, schedules.decision_of_a_buried_life),
    # Decisions.
    Plant("ambiguous-forgotten-at-once", proposers.forget_ambiguous_at_once, HISTORY, 240, FIVE),
    Plant("one-key-remembered", proposers.remember_one_key, HISTORY, 40, KEYED_QUEUE),
    Plant(
        "keys-without-shares", proposers.remember_keys_without_shares, ("shares of keys",), 40, KEYED_QUEUE
    ),
    Plant("no-terms-remembered", proposers.remember_no_turns, HISTORY, 40, ROUGH_QUEUE),
    by_hand(
        "old-terms-forgotten",
        proposers.forget_old_turns,
        regressions.owner_deposed_after_a_long_turn,
        "answers",
    ),
    by_hand(
        "told-and-decided",
        proposers.decide_for_all_who_asked,
        regressions.caller_that_was_told_meanwhile,
        "linearizable",
        "lost",
    ),
    Plant("empty-from-the-cache", proposers.empty_from_the_cache, HISTORY, 10, ROUGH_QUEUE),
    Plant("proposed-forgotten", proposers.forget_what_was_proposed, HISTORY, 20, ROUGH_QUEUE),
    by_hand("doubtful-held-for-lost", proposers.take_doubtful_for_lost, schedules.decision_that_seemed_out),
    by_hand("all-held-for-decided", proposers.believe_all_decided, schedules.decision_at_one_replica),
    by_hand("decided-by-one", proposers.decided_by_one, schedules.decision_at_one_replica),
    Plant("accepted-by-one", proposers.accept_at_one, ("decided", *HISTORY), 40),
    Plant("bound-of-one", proposers.bound_of_one, HISTORY, 120, ROUGH_QUEUE),
    Plant("swap-below-a-write", proposers.swap_below_a_write, ("linearizable",), 150, CAS, first=75),
    Plant("void-though-it-may-complete", proposers.void_though_it_may_complete, HISTORY, 70, ROUGH_QUEUE),
    Plant("recovered-not-adopted", proposers.recovered_is_not_adopted, ("answers", *HISTORY), 40, ALL_STORE),
    Plant(
        "adopted-shown-twice",
        proposers.adopted_shown_twice,
        HISTORY,
        80,
        replace(ROUGH_QUEUE, faults=ROUGHER),
    ),
    # Keys.
    Plant("no-promise-for-a-key", keys.promise_no_ballot, HISTORY, 5, TWINS),
    Plant("first-few-agree", keys.agree_with_the_first_few, HISTORY, 5, TWINS),
    Plant("own-entries-proposed", keys.propose_ones_own, HISTORY, 5, TWINS),
    Plant("lowest-ballot-proposed", keys.propose_the_lowest, HISTORY, 5, TWINS),
    Plant("key-not-written-down", keys.forget_what_is_held, HISTORY, 5, TWINS),
    Plant("another-ones-key-kept", keys.keep_what_another_began, HISTORY, 5, TWINS_TOGETHER),
    Plant("refused-key-stored", keys.store_what_was_refused, HISTORY, 5, TWINS_TOGETHER),
    by_hand("ages-by-wall-clock", ages.measure_ages_by_the_wall_clock, schedules.key_after_a_step_of_clocks),
    by_hand("latest-is-old", ages.call_old_what_is_latest, schedules.key_that_was_decided_last),
    Plant("old-after-a-restart", ages.call_old_what_was_found, HISTORY, 240, LEAPING_KEYS, first=70),
    # Forwarding.
    Plant("every-copy-served", forwarding.serve_every_copy, HISTORY, 15, ROUTED),
    Plant(
        "decided-here-after-a-lost-answer", forwarding.decide_here_after_a_lost_answer, HISTORY, 15, ROUTED
    ),
    Plant("proposed-handed-over", forwarding.hand_over_what_was_proposed, HISTORY, 50, ROUTED),
    Plant("lost-answers-did-nothing", forwarding.lost_answers_did_nothing, HISTORY, 12, ROUTED),
    # Eventual consistency.
    Plant("decisions-miss-changes", weak.drop_what_decisions_depend_on, HISTORY, 40, WEAK),
    Plant("weak-answers-invented", weak.answer_what_nobody_gave, ("given",), 5, WEAK),
    Plant("weak-as-at-first", weak.answer_as_at_first, ("all see the same",), 20, worlds="weak", first=14),
    Plant("weak-under-a-key", weak.answer_keyed_calls_weakly, ("same answer",), 100, worlds="weak", first=34),
    in_outboxes(
        "relayed-without-a-key",
        outboxes.relay_without_a_key,
        ("taken twice", "accepted once", "right course"),
    ),
    in_outboxes("relayed-times-anew", outboxes.count_times_anew, ("lost",), first=13),
    in_outboxes("accepted-unrelayed", outboxes.accept_what_failed, ("lost",), first=17),
    in_outboxes("outbox-leases-forgotten", outboxes.forget_leases, ("lost", "answers"), first=12),
    in_outboxes("old-keys-repeated", outboxes.repeat_old_keys, ("answers",), first=64),
    in_outboxes("one-key-insisted-on", outboxes.insist_on_one_key, ("answers",), first=64),
    in_outboxes("outboxes-not-asked", outboxes.ask_no_outbox, ("linearizable", "empty"), first=7),
    in_outboxes(
        "outboxes-asked-before", outboxes.look_at_outboxes_only_before, ("linearizable", "empty"), first=140
    ),
    in_outboxes(
        "outboxes-asked-afterwards",
        outboxes.look_at_outboxes_only_afterwards,
        ("linearizable", "empty"),
        first=150,
    ),
    in_outboxes(
        "relayed-items-overlooked",
        outboxes.overlook_what_is_being_relayed,
        ("linearizable", "empty"),
        first=38,
    ),
    in_outboxes("outbox-not-found-again", outboxes.find_nothing_from_before, ("lost", "answers"), first=11),
    in_changes("nothing-carried", changing.carry_nothing, FEW, first=15),
    in_changes(
        "not-carried-for-votes", changing.carry_for_no_vote, FEW, "same answer", worlds="changing", seeds=90
    ),
    in_changes("summaries-carried-alone", changing.carry_summaries_alone, FEW),
    in_changes("decided-not-carried", changing.carry_what_is_undecided, FEW, first=17),
    in_changes("new-quorums-alone", changing.meet_the_new_alone, FEW, first=12),
    in_changes("old-quorums-alone", changing.meet_the_old_alone, FEW),
    in_changes(
        "any-survivor-stands-in", changing.meet_any_survivor, Hint(), worlds="dying", seeds=10, first=814
    ),
    in_changes(
        "old-is-over-at-once", changing.wait_for_no_survivor, Hint(), worlds="dying", seeds=10, first=100
    ),
    in_changes(
        "elsewhere-from-the-one-to-come",
        changing.go_elsewhere_from_what_was_to_come,
        Hint(fields={"operations": 15, "catches_up": False}),
        worlds="dying-in-between",
        seeds=10,
        first=57,
    ),
    in_changes(
        "others-leave-with-a-place", changing.leave_while_moving, FEW, worlds="moving", seeds=15, first=33
    ),
    in_changes(
        "terms-outlast-configurations",
        changing.keep_terms,
        FEW,
        "answers",
        "decided",
        "without faults",
        first=5,
    ),
    in_changes("rounds-outlast-configurations", changing.keep_replies, FEW, "answers", "decided"),
    in_changes("any-configuration", changing.take_messages_of_any, FEW, "complete", "decided", "answers"),
    in_changes(
        "keys-left-behind", changing.leave_keys_behind, FEW_KEYED, "accepted once", "right course", first=113
    ),
    in_changes(
        "keys-left-behind-for-learners",
        changing.leave_keys_behind_for_learners,
        FEW_KEYED,
        "accepted once",
        "right course",
        first=113,
    ),
    in_changes("agreed-as-if-alone", changing.agree_as_if_alone, FEW_KEYED, "accepted once", "right course"),
    in_changes(
        "void-by-both",
        changing.void_by_the_joint_quorum,
        FEW_KEYED,
        "accepted once",
        "right course",
        seeds=15,
        first=17,
    ),
    Plant(
        "switched-at-once",
        changing.switch_at_once,
        (*HISTORY, "right course"),
        10,
        PRIMARY,
        worlds="standing",
    ),
    Plant("entries-unrepaired", weak.repair_no_entries, ("done is known",), 10, worlds="weak", first=70),
    Plant("decisions-unrepaired", weak.repair_no_decisions, ("done is known",), 10, worlds="weak", first=70),
    Plant("repaired-unasked", weak.tell_what_one_accepted, ("decided",), 10, worlds="varied", first=347),
    # Leases.
    in_leased("lease-settled-by-item", leases.settle_by_item, 25, "right course", "accepted once"),
    in_leased("lease-ends-with-its-deadline", leases.end_with_the_deadline, 25, "right course"),
    in_leased("accepted-is-kept", leases.keep_what_is_accepted, 5, "answers", "right course"),
    in_leased("expired-are-gone", leases.drop_what_expired, 25, "lost", "right course"),
    in_leased("endings-forgotten", leases.forget_how_leases_ended, 100, "right course"),
    in_leased("released-is-held", leases.leave_released_ones_held, 100, "right course"),
    in_leased("handed-out-at-once", leases.hand_out_at_once, 15, "not too early"),
    in_leased("never-handed-out-again", leases.never_hand_out_again, 5, "answers"),
    in_leased("deliveries-not-counted", leases.count_no_deliveries, 5, "right course", "accepted once"),
    in_leased("latest-handed-out-first", leases.hand_out_the_latest_first, 10, "lease order"),
    in_leased(
        "handed-out-unnoted",
        leases.pass_incomplete_unnoted,
        100,
        "accepted once",
        "right course",
        "leases bounded",
        *HISTORY,
    ),
    in_leased("payload-not-fetched", leases.keep_no_payload, 90, "well formed", first=63),
    in_leased("room-for-all-leases", leases.have_room_for_all, 90, "leases bounded"),
    in_own("repeat-run-again", own.run_a_repeat_again, 60, "same answer"),
    in_own("answers-forgotten", own.forget_answers_that_changed_nothing, 60, "same answer"),
    in_own("calls-from-one-state", own.run_each_from_the_decided_state, 20),
    in_own("look-undecided", own.answer_from_what_is_not_decided, 90, first=385),
    in_own("change-from-a-look", own.answer_a_change_from_a_look, 20),
    in_own("stored-calls-as-they-come", own.run_stored_calls_as_they_come, 20, first=94),
    in_own("stored-calls-not-decided", own.answer_from_stored_calls, 80, first=165),
    in_own("stored-calls-forgotten", own.forget_stored_calls_below_a_complete_one, 60),
    in_own("answer-before-all-has-run", own.answer_before_all_has_run, 60),
    by_hand(
        "ended-calls-come-later", proposers.let_ended_calls_come_later, own.call_that_ended_ahead_of_time
    ),
    Plant(
        "newer-writes-come-later",
        proposers.let_newer_writes_come_later,
        ("linearizable",),
        70,
        SLOW_CAS,
        first=119,
    ),
    by_hand(
        "calls-without-a-bound",
        own.store_calls_without_a_bound,
        own.calls_while_no_decision_is_made,
        "answers",
    ),
    by_hand(
        "begun-anew-though-stored",
        own.begin_anew_though_it_may_be_stored,
        own.call_for_which_some_have_no_room,
    ),
    by_hand("ended-and-sent-again", own.send_again_what_has_ended, own.call_given_up_beside_a_write),
    in_own("stored-calls-unnoted", own.leave_no_word_of_stored_calls, 60, first=20),
    # Catching up.
    Plant("unmarked-installed", catching.install_unmarked, HISTORY, 250, CATCHING_UP_ROUGHLY, first=95),
    Plant("history-installed", catching.install_history, ("nothing below the horizon",), 60, CATCHING_UP),
    Plant("arrivals-forgotten", catching.forget_arrival_numbers, ("level",), 60, CATCHING_UP),
    by_hand("unmarked-below-a-fence", catching.install_unmarked, caught_up.unmarked_below_a_fence),
    by_hand("marked-left-out", catching.install_nothing_below, caught_up.acknowledged_at_one, *HISTORY),
    by_hand("changes-skipped", catching.forget_arrival_numbers, caught_up.acknowledged_at_one, *HISTORY),
)

NEEDLESS: Final = (
    # The recovery's verdict says what the note would: after "unknown" no summary holds the entry, nor can one that is
    # superseded, for the proposer settles its own doubtful accepts before it answers; and a verdict that does not come
    # ends the operation. So an entry that all replicas then refuse is nowhere.
    Plant("restamped-after-recovery", fronts.forget_that_it_recovered, (), hint=ROUGH_QUEUE),
    # A replica that has promised more refuses every accept of the lower term, which is what a promise is for; that it
    # refuses the collect as well only tells the owner sooner.
    Plant("late-collect-answered", replicas.promise_without_refusing, (), hint=ROUGH_QUEUE),
    # A fence that is higher than need be only refuses more.
    Plant(
        "objects-share-the-highest-fence",
        replicas.objects_share_the_highest_fence,
        (),
        hint=Hint((*QUEUE, *REGISTER, *DICTIONARY)),
    ),
    # Each host serves a copy of a forwarded request once, and a forwarded request that goes on is another one; that it may go in circles until its
    # deadline costs time.
    Plant("handed-on", forwarding.hand_on_what_was_handed_over, (), hint=ROUTED),
)
"""Rules of the shipped code that may be dropped without harm to any promise, each with the argument."""

BY_NAME: Final = {plant.name: plant for plant in (*PLANTS, *NEEDLESS)}
