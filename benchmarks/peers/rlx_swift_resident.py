"""rlx_swift's resident loop: steps are queued, and `run_steps` makes them with few calls of the device."""
import peers_api

NAME = "rlx_swift, resident loop"
PLAIN = peers_api.load("rlx_swift")
available = PLAIN.available


class Run:
    def __init__(self, workload, seed):
        self.plain, self.queued = PLAIN.build(workload, seed), []

    def step(self):
        batches = self.plain.batches
        self.queued.append(batches[self.plain.i % len(batches)])
        self.plain.i += 1

    def sync(self):
        if self.queued:
            self.last = self.plain.ts.run_steps(self.queued)[-1].loss
            self.queued = []

    def loss(self):
        self.sync()
        return self.last


def supports(workload):
    return not workload.startswith("opt_") and PLAIN.supports(workload)


def build(workload, seed):
    return Run(workload, seed)
