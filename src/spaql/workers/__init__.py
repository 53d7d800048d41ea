"""Workers that apply a task to items: processes on this machine, or a Ray cluster."""

from spaql.workers.local import ATTEMPTS, Answer, Workers, cores, refuse_in_import, sendable
from spaql.workers.on_ray import RayWorkers

__all__ = ["ATTEMPTS", "Answer", "RayWorkers", "Workers", "cores", "refuse_in_import", "sendable"]
