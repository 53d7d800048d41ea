"""Workers that apply a task to items, in processes on this machine."""

from spaql.workers.local import ATTEMPTS, Answer, Pool, Workers, cores, refuse_in_import, sendable

__all__ = ["ATTEMPTS", "Answer", "Pool", "Workers", "cores", "refuse_in_import", "sendable"]
