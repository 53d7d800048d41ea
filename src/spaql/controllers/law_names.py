"""Laws in an engineer's words: P, PI, PD and PID controllers with their gains and times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spaql.controllers.features import Difference, Error, Feature, FilteredDerivative, Integral, Observed
from spaql.controllers.wording import sum_text
from spaql.formatting import duration
from spaql.spaces import split_unit

if TYPE_CHECKING:
    from spaql.controllers.controller import Controller


def law_names(controller: Controller, leaf: int = 1) -> tuple[str, ...]:
    """Return what the laws of a leaf are called, one for each number of the action; empty if one has no name.

    A law has a name if it reads one error, and besides it only the integral, the differences and the
    derivatives of that error or of its output, and its set-point, which gives the proportional part a weight
    b of the set-point; or such a law with other terms added, which are then listed.

    Parameters
    ----------
    controller
        The controller.
    leaf
        The number of the leaf, counted from 1 in printed order.
    """
    row = controller.box(leaf)[2]
    if controller.discrete or not controller.features or controller.laws.constant[row]:
        return ()
    names = [_law_name(controller, row, k) for k in range(len(controller.actions))]
    if any(name is None for name in names):
        return ()
    if len(names) == 1:
        return (f"{names[0]}",)
    actions = (split_unit(action)[0] for action in controller.actions)
    return tuple(f"{action}: {name}" for action, name in zip(actions, names, strict=True))


def _law_name(controller: Controller, row: int, k: int) -> str | None:
    """Return the name of a law, or None if it has none."""
    laws = controller.laws
    features = controller.features
    gain = {
        feature.name: float(w) for feature, w in zip(features, laws.gain[row, k], strict=True) if w != 0.0
    }
    used = [feature for feature in features if feature.name in gain]
    errors = {_error_of(feature, features) for feature in used} - {None}
    if len(errors) != 1:
        return None
    error = next(feature for feature in features if feature.name in errors)
    assert isinstance(error, Error)
    kp, ki, kd, tf, weight, rest = _parts(controller, used, gain, error)
    if (kp == 0.0 and kd == 0.0 and ki == 0.0) or (weight and not kp):
        return None
    label = ("P" if kp else "") + ("I" if ki else "") + ("D" if kd else "")
    numbers = [f"Kp = {kp:.3g}"] if kp else []
    if ki:
        numbers.append(f"Ti = {duration(kp / ki)}" if kp and kp / ki > 0 else f"Ki = {ki:.3g} per second")
    if kd:
        numbers.append(f"Td = {duration(kd / kp)}" if kp and kd / kp > 0 else f"Kd = {kd:.3g} s")
    if kd and tf:
        numbers.append(f"filter {duration(tf)}")
    if weight:
        numbers.append(f"b = {1 + weight / kp:.3g}")
    name = f"a{'n' if label[0] == 'I' else ''} {label} controller, {', '.join(numbers)}"
    offset = float(laws.offset[row, k])
    if rest or offset:
        place = {feature.name: j for j, feature in enumerate(features)}
        weights = laws.gain[row, k].copy()
        weights[[place[feature.name] for feature in used if feature.name not in rest]] = 0.0
        name += f", plus {sum_text(weights, [feature.name for feature in features], 3, offset)}"
    return name + (" (velocity form)" if controller.form == "velocity" else "")


def _error_of(feature: Feature, features: tuple[Feature, ...]) -> str | None:
    """Return the error that a feature is, or is computed from alone."""
    if isinstance(feature, Error):
        return feature.name
    if isinstance(feature, Integral | Difference | FilteredDerivative):
        source = next((other for other in features if other.name == feature.of), None)
        if source is not None:
            return _error_of(source, features)
        errors = [other.name for other in features if isinstance(other, Error) and other.output == feature.of]
        return errors[0] if len(errors) == 1 else None
    return None


def _parts(
    controller: Controller, used: list[Feature], gain: dict[str, float], of: Error
) -> tuple[float, float, float, float, float, list[str]]:
    """Return Kp, Ki, Kd, the derivative's time constant, the gain of the set-point, and other terms' names.

    Kd is positive for a derivative of the error, and for minus that of the output, which a step of the
    set-point does not pass.
    """
    kp = ki = kd = tf = weight = 0.0
    rest: list[str] = []
    error = of.name
    velocity = controller.form == "velocity"
    step = controller.sample_time or 1.0
    differences = [feature for feature in controller.features if isinstance(feature, Difference)]
    changes = {feature.name for feature in differences if feature.of == error}
    measured = {feature.name for feature in differences if feature.of == of.output}
    weighted = isinstance(gain.get(error if not velocity else next(iter(changes), "")), float)
    for feature in used:
        number = gain[feature.name]
        alone = kd == 0.0 or tf == getattr(feature, "time_constant", 0.0)  # of a derivative: no other filter
        if feature.name == error:
            kp, ki = (kp, ki + number / step) if velocity else (kp + number, ki)
        elif feature.name in changes and (velocity or alone):
            kp, kd = (kp + number, kd) if velocity else (kp, kd + number * step)
        elif velocity and isinstance(feature, Difference) and feature.of in changes:
            kd += number * step
        elif not velocity and isinstance(feature, Integral) and feature.of == error:
            ki += number
        elif not velocity and alone and isinstance(feature, FilteredDerivative) and feature.of == error:
            kd = kd + number
            tf = feature.time_constant
        elif not velocity and alone and isinstance(feature, FilteredDerivative) and feature.of == of.output:
            kd = kd - number
            tf = feature.time_constant
        elif velocity and isinstance(feature, Difference) and feature.of in measured:
            kd -= number * step
        elif (
            weighted
            and isinstance(feature, Difference if velocity else Observed)
            and feature.of == of.setpoint
        ):
            weight += number
        else:
            rest.append(feature.name)
    return kp, ki, kd, tf, weight, rest
