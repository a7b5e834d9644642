"""The sentences about standing rules: what switching between two choices would have won, or that it wins nothing. Pure."""

from ..model.advice import reads_by_outcome
from ..model.figures import AdaptiveFigures, Figures, RecommendationFigures, WindowFigures
from ..model.phrases import counted, duration, listed, percent, points, quoted, signed


def sentences(figures: Figures) -> list[str]:
    """Give what is to be said of each type, where any replica failed: what the best standing rule gives, then which it is and what it costs."""
    told: list[str] = []
    for row in figures.adaptive:
        told += winning(row, figures.window) if row.wins else [wins_nothing(row)]
    tried = {row.adt for row in figures.adaptive}
    if any(replica.outages for replica in figures.replicas):
        told += [cannot_switch(row) for row in figures.recommendations if row.adt not in tried]
    return told


def winning(row: AdaptiveFigures, window: WindowFigures) -> list[str]:
    """Give what is to be said of a rule that wins."""
    return [_wins(row), _rule(row, " of the plan" if window.time_scale != 1 else "")]


def condition(row: AdaptiveFigures) -> str:
    """Write when the fallback is wanted."""
    if row.live_below is not None:
        return f"fewer than {row.live_below} replicas are up"
    return f"{listed(row.down)} {'are' if len(row.down) > 1 else 'is'} down"


def _wins(row: AdaptiveFigures) -> str:
    if row.low is None or row.high is None:
        sure = "the trace is too short to say how sure that is"
    else:
        chance = "" if row.certain else ", so that it may be chance"
        sure = f"95 % interval {signed(row.low)} to {signed(row.high)}{chance}"
    return (
        f"For the {row.adt}, a standing rule would have served {percent(row.served)} of the mix, {points(row.difference)} more than "
        f"{quoted(row.fixed, row.adt)} alone ({signed(row.difference)} points, {sure})."
    )


def _rule(row: AdaptiveFigures, scale: str) -> str:
    return (
        f"It is {quoted(row.normal, row.adt)}, and {quoted(row.fallback, row.adt)} while {condition(row)}, once that has lasted "
        f"{duration(row.after_s)}. It would have switched {counted(row.switches, 'time')}, with both choices in force for "
        f"{duration(row.joint_s)}{scale} together. It was picked with hindsight, as the best of {row.tried} on this trace."
    )


def wins_nothing(row: AdaptiveFigures) -> str:
    """Say so where no rule wins."""
    return (
        f"For the {row.adt}, switching quorums as replicas fail wins nothing here: no standing rule of the {row.tried} that were tried "
        f"would have served more of the mix than {quoted(row.fixed, row.adt)} alone, {percent(row.served_fixed)}."
    )


def cannot_switch(row: RecommendationFigures) -> str:
    """Say so where no rule could have switched."""
    if reads_by_outcome(row.quorums):
        return (
            f"For the {row.adt}, no standing rule was tried: with {quoted(row.choice, row.adt)} the outcomes of an operation read different "
            "quorums, and in a standing rule they read the same."
        )
    return (
        f"For the {row.adt}, no standing rule was found that could have switched quorums as replicas failed here: while its condition holds, that "
        "takes replicas that hold every quorum of both choices."
    )
