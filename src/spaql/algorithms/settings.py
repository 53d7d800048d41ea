"""Settings of learners, from which the command line, the agent file and the documentation are derived."""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields
from typing import Any

from spaql.errors import SettingError
from spaql.values import plain, real_number, whole_number


def setting(
    default: Any,
    help: str,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
) -> Any:
    """Return a dataclass field for a setting: its default, help and range."""
    return field(default=default, metadata={"help": help, "least": least, "above": above, "most": most})


@dataclass(frozen=True, kw_only=True)
class LearnerSettings:
    """The settings of a learner; the command line and the agent file are derived from them."""

    def __post_init__(self) -> None:
        for item in fields(self):
            object.__setattr__(self, item.name, self._checked(item, getattr(self, item.name)))

    def as_data(self) -> dict[str, Any]:
        """Return the settings as plain data, for files."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @staticmethod
    def _checked(item: Field[Any], value: Any) -> Any:
        """Return a setting as a Python value of the type of its default; raises if it is out of range."""
        least, above, most = (item.metadata.get(name) for name in ("least", "above", "most"))
        if isinstance(item.default, bool):
            if not isinstance(plain(value), bool):
                raise SettingError(f"{item.name} is {value!r}, and must be True or False.")
        elif isinstance(item.default, int):
            whole = whole_number(item.name, value, least, most)
            real_number(item.name, whole, above=above)
            return whole
        elif isinstance(item.default, float):  # 20 and 20.0 are saved alike
            return real_number(item.name, value, least=least, above=above, most=most)
        return plain(value)


@dataclass(frozen=True, kw_only=True)
class Settings(LearnerSettings):
    """The settings of a learner that is evaluated after every episode."""

    rollouts: int = setting(20, "episodes of the evaluation after every iteration (N)", least=1)
