"""What every key of `figures.json` means; `docs/reference/figures.md` and the columns of the Parquet tables are made from it."""

from collections.abc import Mapping
from typing import Final

_OUTAGES: Final = {
    "outages": "number of outages, those cut by the window counted as they are",
    "total_s": "seconds of all of them together",
    "longest_s": "seconds of the longest",
    "mean_s": "total_s / outages: the mean time to recovery; null without an outage",
}
_ON_TRACE: Final = {
    f"trace.{key}": text + "; from the trace: an outage lasts while some front end has too few"
    for key, text in _OUTAGES.items()
}
_CHOICE: Final = {
    "choice": "name of the quorum choice: that of run.json, or its quorums in words",
    "adt": "abstract data type of the choice",
}
_KIND: Final = (
    "`typed`: from the type's own dependencies; `read-write`: every operation that changes the state reads and writes "
    "it whole; `run`: as run.json has it, minimal or not"
)
_QUORUMS: Final = {
    "initial": "initial quorum of that class: a number of votes, or a quorum system in words",
    "final": "its final quorum",
    "needed_votes": "votes that must be live for both; null where the choice is made of quorum systems",
}
_PREDICTED: Final = {
    "predicted_independent": "share of time with enough, had the replicas failed independently with their "
    "up_share_known",
    "predicted_joint": "share of the known time in which front ends saw enough",
}
_INTERVAL: Final = {
    "low": "lower end of its 95 % confidence interval",
    "high": "upper end",
}
_TRACE_INTERVAL: Final = {
    "low": "lower end of the 95 % interval of the trace, by a block bootstrap over its stretches and by outage, the wider of "
    "both: what another such stretch of time might give; null if neither can be made",
    "high": "upper end",
}
_BY_OUTAGE: Final = (
    "95 % interval [low, high] from the number and length of the outages in the trace; null with 8 outages or more where there "
    "is a bootstrap, and where no replica was seen down, or up"
)


def _table(name: str, *parts: Mapping[str, str], **own: str) -> dict[str, str]:
    return {f"{name}[].{key}": text for part in (*parts, own) for key, text in part.items()}


_OPERATION: Final = {
    "operation": "operation, as Deq",
    "normal_class": "the event class that stands for the operation: <operation>/Ok",
}

KEYS: Final[Mapping[str, str]] = {
    "format": "version of this layout; it changes when a key changes its meaning",
    "versions": "what made the report: quorate, python, and spark and java where they ran",
    "keys": "this table",
    "source.kind": "`run`: a measured run; `probes`: a prober's samples alone; `trace`: a CSV of up times; "
    "`prometheus`: a saved answer of a range query",
    "source.name": "name of the file or folder that was reported on, or of the cluster whose replicas were asked or whose days a store keeps",
    "source.files": "names of the files that were read",
    "source.engine": "`spark` or `python`; both compute the same figures",
    "source.front_ends": "who ran operations; empty where none were recorded",
    "source.links": "whether links between front ends and replicas were recorded: then a replica counts as up for a "
    "front end while both are up",
    "source.prober_step_s": "seconds between two probes of one replica; null without a prober",
    "source.plan": "the text of the fault plan; null where there was none",
    "source.made": "what made the run, by name, as run.json says",
    "source.notes": "what lessens the measurement, each in a sentence, as run.json says",
    "window.start_s": "start of the measurement, in seconds since 1970 (UTC) where the source says so",
    "window.end_s": "its end",
    "window.known_s": "seconds during which the state of every replica and link is known, the mean over front ends; all "
    "predictions rest on them",
    "window.up_changes": "number of intervals between two changes within the known time, of all front ends",
    "window.bin_s": "width of a timeline bin, in seconds",
    "window.blocks": "number of stretches that the block bootstrap draws; null if the window is too short for one",
    "window.time_scale": "seconds of the plan that one measured second stands for; 1 when nothing was scaled",
    "window.lag_s": "an attempt within so many seconds of a change that decides counts under detection",
    "window.from_s": "the moment from which on rows count, as --from or --last asked; null where all do",
    "window.to_s": "the moment before which rows count, as --to or --last asked; null where all do",
    **_table(
        "replicas",
        replica="name of the replica",
        votes="its votes",
        rack="its rack in the plan; null without one",
        observed_s="seconds of the window covered by its own intervals",
        up_share="share of observed_s during which it was up",
        up_share_known="share of the known time during which front ends saw it up; the p of predicted_independent",
        outages="number of its outages; down intervals that touch are one outage",
        longest_outage_s="seconds of its longest outage",
        mttf_s="mean time to failure: its up time by the number of times it went down; null if it never did",
        mttr_s="mean time to repair: the mean length of its outages; null without one",
    ),
    "correlation.variance_ratio": "variance of the number of replicas that are down, by what it would be were they "
    "independent: 1 is independent, more is failing together; null if nothing failed",
    **_table(
        "correlation.pairs",
        replica="one replica",
        other="another",
        both_down="share of the known time in which both were down",
        both_down_independent="the product of their own shares",
        phi="correlation of their being down, from -1 to 1; null if one of them never changed",
    ),
    **_table(
        "live_votes",
        live_votes="a number of live votes",
        measured_share="share of the known time with exactly so many live votes",
        independent_share="the same, had the replicas failed independently with their up_share_known",
    ),
    **_table(
        "up_sets",
        up="replicas that were up together, all others being down; the 1,024 longest-lasting sets",
        share="share of the known time during which exactly these were up",
    ),
    **_table(
        "operations",
        _CHOICE,
        _OPERATION,
        _QUORUMS,
        {"needed": "the quorum system that must be up: both quorums of the normal class"},
        attempts="finished operations that began within the window, whatever the outcome",
        ok="operations that were answered",
        unavailable="operations refused because no quorum answered; they certainly did not happen",
        unknown="operations without an answer that may or may not have happened",
        measured="ok / attempts: the measured availability",
        low="lower end of its 95 % confidence interval: the lowest of wilson, block_bootstrap and by_outage",
        high="upper end: the highest of them",
        wilson="95 % interval [low, high], were all attempts independent trials (too narrow in outages)",
        block_bootstrap="95 % interval over window.blocks stretches of time drawn anew; null if the run is too short",
        by_outage=_BY_OUTAGE,
        measured_if_unknown_ok="availability if every unknown outcome is counted as answered",
        predicted_independent=_PREDICTED["predicted_independent"],
        predicted_joint=_PREDICTED["predicted_joint"],
        predicted_at_attempts="share of the attempts in the known time that began while there was enough; null if none "
        "did",
        joint_agrees="whether predicted_joint lies within [low, high]",
        independent_agrees="whether predicted_independent does",
    ),
    **_table(
        "operations",
        *(
            {
                f"{model}_gap.difference": f"measured - predicted_{model}",
                f"{model}_gap.low": "lower end of its 95 % interval: stretches of time are drawn anew, and attempts and "
                "trace of each stay together; null if the run is too short",
                f"{model}_gap.high": "upper end",
                f"{model}_gap.certain": "whether the interval leaves the sign of the difference certain",
            }
            for model in ("joint", "independent")
        ),
        {
            "cause.correlation": "predicted_joint - predicted_independent: replicas failing together. These five add up "
            "to measured - predicted_independent; null if no attempt began in the known time",
            "cause.timing": "predicted_at_attempts - predicted_joint: when operations were tried",
            "cause.detection": "successes less failures against the up-set at their start, within lag_s of a change that "
            "decides, by the attempts in the known time",
            "cause.rest": "the same away from any such change: contention, timeouts and whatever else",
            "cause.unknown_state": "measured less the availability of the attempts in the known time",
            "surprises.failed_near_change": "not answered although there was enough at the start, within lag_s of a "
            "change",
            "surprises.ok_near_change": "answered although there was too little at the start, within lag_s of a change",
            "surprises.unavailable_while_enough": "unavailable although there was enough, away from any change",
            "surprises.unknown_while_enough": "unknown although there was enough, away from any change",
            "surprises.ok_while_short": "answered although there was too little, away from any change",
            "surprises.outside_trace": "attempts begun while the state of some replica is unknown",
        },
        _ON_TRACE,
        {f"seen.{key}": text + "; as operations saw it: from a failed attempt to the next answered one, by any front end" for key, text in _OUTAGES.items()},
    ),
    **_table(
        "classes",
        _CHOICE,
        _QUORUMS,
        _PREDICTED,
        _ON_TRACE,
        operation="operation of the class",
        event_class="event class, as Deq/Empty",
        normal="whether this class stands for its operation",
        ok="operations answered with this class; failures have no class",
        measured="measured availability, where the operation has this class only; else null",
    ),
    **_table(
        "comparisons",
        _INTERVAL,
        adt="abstract data type",
        operation="an operation that was run under both choices",
        choice="one quorum choice",
        other="another",
        difference="measured availability under choice less that under other",
        predicted_joint="the same difference as predicted from joint up-sets",
        certain="whether the interval leaves the sign of the difference certain",
    ),
    **_table(
        "claim",
        _INTERVAL,
        adt="abstract data type",
        typed="a typed choice that was run: blind operations are ordered by clocks and read nothing",
        read_write="a read/write choice that was run: blind operations read an initial quorum first",
        operation="an operation that was run under both",
        blind="whether it is one that typed quorums let go without reading, as Enq",
        difference="measured availability under typed less that under read_write",
        predicted_joint="the same difference as predicted from joint up-sets",
        certain="whether the interval leaves the sign of the difference certain",
    ),
    **_table(
        "candidates",
        {"choice": "a valid quorum choice: its name in run.json, or its quorums in words", "adt": _CHOICE["adt"]},
        _TRACE_INTERVAL,
        kind=_KIND,
        run_as="the name of the run's choice with these quorums; null: a counterfactual only",
        served="share of the mix that would have been served, from joint up-sets",
        served_independent="the same, had the replicas failed independently",
        quorum_size="votes asked for an operation of the mix, in the mean: initial and final; null for quorum systems",
        on_front="whether no other candidate is as good for every operation and better for one (Pareto)",
        dominated_by="one that is; null on the front",
        recommended="whether it is the one recommended for its type",
    ),
    **_table(
        "counterfactuals",
        _CHOICE,
        _OPERATION,
        _QUORUMS,
        _PREDICTED,
        _TRACE_INTERVAL,
        _ON_TRACE,
        kind=_KIND,
        run_as="the name of the run's choice with these quorums; null: a counterfactual only",
        by_outage=_BY_OUTAGE,
        predicted_at_attempts="share of all attempts at the operation, under any choice of the type, that began while "
        "this choice had enough; null without attempts",
    ),
    **_table(
        "recommendations",
        _CHOICE,
        _TRACE_INTERVAL,
        kind=_KIND,
        run_as="the name of the run's choice with these quorums; null: it was not run",
        mix_from="`attempts`: as operations were tried; `given`: as asked for; `equal`: each operation alike",
        served="share of the mix that it would have served, from joint up-sets",
        tied="others that would have served as much; this one would serve most were failures independent, then asks the fewest votes",
    ),
    **_table(
        "recommendations",
        objects="objects that have another choice, for `quorate choice set`: those of the run where it had one choice of the "
        "type, else `<type>/NAME`; empty where nothing is to be changed, and where the service cannot keep the choice",
    ),
    **_table(
        "recommendations[].quorums",
        _QUORUMS,
        event_class="event class of the recommended choice, as Deq/Empty",
    ),
    **_table(
        "recommendations[].mix",
        operation="an operation",
        share="its share of the mix",
    ),
    **_table(
        "recommendations[].against",
        choice="another choice: each that was run, and the best read/write one",
        kind=_KIND,
        run="whether it was run",
        served="share of the mix that it would have served",
        difference="served by the recommended choice less served by this one",
        low=_TRACE_INTERVAL["low"],
        high="upper end",
        certain="whether the interval leaves the sign of the difference certain",
    ),
    **_table(
        "adaptive",
        adt="abstract data type",
        fixed="the recommended choice",
        normal="the choice that the best standing rule has in force while its condition does not hold",
        fallback="the one that it has in force while the condition holds: a choice, or majorities of the members that the "
        "condition leaves",
        down="the condition: these replicas are down, all of them; empty for live_below",
        live_below="the condition: fewer replicas than this are up; null for down",
        after_s="seconds that the condition must hold, or not hold, before quorums are switched; of the plan, where measured time "
        "was scaled",
        served="share of the mix that the rule would have served: the switches were simulated over the trace",
        served_fixed="share of the mix that the recommended choice alone would have served",
        difference="served - served_fixed",
        low="lower end of its 95 % interval, by a block bootstrap over stretches of the trace; null if it is too short for one",
        high="upper end",
        certain="whether low is above 0; the rule was picked with hindsight, which the interval does not reckon with",
        wins="whether the rule would have served more",
        switches="changes of quorums that began",
        joint_s="seconds in which quorums of both choices were asked for; of the plan, where measured time was scaled",
        fallback_s="seconds in which the fallback was in force, likewise",
        tried="rules that were simulated: those of two choices and a condition that would serve most if switching took no time",
        objects="objects for which quorate choice set --advice --standing sets the rule; <type>/NAME where they are not known; none where the "
        "rule would not have served more, or the service does not keep its choices",
    ),
    **_table(
        "adaptive[].normal_quorums",
        _QUORUMS,
        event_class="event class of the choice while the condition does not hold",
    ),
    **_table(
        "adaptive[].fallback_quorums",
        _QUORUMS,
        event_class="event class of the choice while it holds; no row where that is a majority of the replicas that the condition leaves",
    ),
    **_table(
        "adaptive[].classes",
        event_class="event class of the operations of the mix",
        fixed="share of the known time with enough for it, under the recommended choice",
        adaptive="the same under the standing rule",
    ),
    **_table(
        "latencies",
        choice="quorum choice",
        operation="operation",
        event_class="event class; null unless the outcome is ok",
        outcome="ok, unavailable or unknown",
        operations="number of operations",
        p50_s="median latency, in seconds (nearest rank)",
        p90_s="90 % took at most this long, in seconds",
        p99_s="99 % took at most this long, in seconds",
        max_s="the longest, in seconds",
    ),
    **_table(
        "prober",
        replica="name of the replica",
        watched_s="seconds in which both the truth and the prober's view are known",
        agreed="share of watched_s in which they agree; null without such time",
        outages="its true outages that the prober watched from their start",
        detected="those during which the prober saw it down",
        missed="those during which it did not",
        false_alarms="stretches in which the prober saw it down although it was up all along",
        detection_mean_s="mean seconds from the start of a detected outage until the prober saw it",
        detection_max_s="the longest of them",
        recovery_mean_s="mean seconds from the end of a detected outage until the prober saw it up again",
    ),
    **_table(
        "timeline",
        choice="quorum choice",
        operation="operation",
        attempts="attempts begun in each bin",
        failed="attempts of each bin that were unavailable or unknown",
    ),
    **_table(
        "downtime",
        replica="name of the replica",
        down_share="share of each bin during which it was down",
    ),
    **_table(
        "rows",
        kind="operations, intervals (of replicas), links or probes",
        read="rows read; blank lines are none",
        used="rows that the figures rest on",
        rejected="rows kept aside",
    ),
    **_table(
        "rejected",
        source="file name",
        reason="why rows were kept aside",
        rows="how many",
        example="the first of them in text order, cut to 200 characters",
    ),
    **_table(
        "objectives",
        {"choice": _CHOICE["choice"], "adt": _CHOICE["adt"]},
        objective="what --slo asked for: an operation, or an event class",
        target="the share that --slo asked for",
        run_as="the name of the run's choice with these quorums; null: it was not run",
        present="whether it is in force: the choice of --present, else each that was run, else majorities; where that changed, `as it was` alone: each choice "
        "in its own time",
        unit="`attempts`: measured, by operations; `seconds`: predicted from joint up-sets, by the known time, the mean over front ends",
        total="attempts, or seconds of known time",
        availability="the share of total that was good: attempts that were answered, time with enough",
        budget="the error budget: total * (1 - target)",
        spent="what was not good of total",
        left="budget - spent; below 0 where it is overspent",
        burn_rate="spent / budget: 1 spends the budget exactly",
        met="whether spent is at most budget, reckoned without rounding",
    ),
    **_table(
        "objectives[].days",
        day="the day (UTC) as a date; `day 1` for the first where times are no dates, or of the plan where time was scaled",
        total="attempts begun on the day, or known seconds of it; days without any are left out",
        spent="what was not good of them",
        burn_rate="spent / (total * (1 - target))",
    ),
    **_table(
        "verdicts",
        {"choice": _CHOICE["choice"], "adt": _CHOICE["adt"]},
        run_as="the name of the run's choice with these quorums; null: it was not run",
        present="whether it is in force",
        valid="whether its quorums meet as the type asks; another choice is never advised",
        met="whether it met, or would have met, every objective of its type",
        missed="the objectives that it missed",
    ),
    **_table(
        "summary",
        {"choice": _CHOICE["choice"], "adt": _CHOICE["adt"]},
        operation="an operation of the mix",
        run_as="the name of the run's choice with these quorums; null: it was not run",
        recommended="whether it is the one recommended for its type",
        present="whether it is in force: the choice of --present, or of the last --since; else each that was run, else majorities",
        available="share of the known time with enough for the operation, from joint up-sets",
        downtime_month_s="(1 - available) of 30 days, in seconds",
        outages="number of outages in the trace",
        longest_s="seconds of the longest; of the plan, where measured time was scaled",
        mttr_s="mean time to repair: the mean length of its outages, likewise; null without one",
    ),
    **_table(
        "regimes",
        adt="abstract data type of the choices",
        regime="number of the regime, from 1: a stretch of time in which one choice was in force; no row where no --since was given",
        from_s="when it begins, in seconds since 1970, or as times of the input count",
        to_s="when it ends; this moment is the next one's",
        choice="name of the quorum choice in force in it",
        operation="an operation of the mix",
        known_s="known seconds of it, the mean over front ends",
        available="share of known_s with enough for the operation under the choice in force, from joint up-sets; null where none is known",
        downtime_s="known seconds without enough",
        outages="number of outages in it; one that goes on across its border is cut there, and counts on both sides",
        longest_s="seconds of the longest, within the regime",
        mttr_s="mean time to repair: the mean length of its outages, within the regime; null without one",
        recommended="name of the choice that is recommended for the whole time",
        recommended_available="share of known_s with enough under that one; null where none is known",
    ),
    **_table(
        "as_it_was",
        adt="abstract data type of the choices",
        operation="an operation of the mix; null for all of the mix, by its shares",
        available="share of the known time with enough for it under the choice that was in force at each time; no row where no --since was given",
        recommended="name of the recommended choice",
        recommended_available="the share under that one all the time",
        adaptive_available="the share under the standing rule of `adaptive`; null where there is none, or its choice has no such event class",
    ),
}  # fmt: skip
