"""rlx_swift's resident loop: steps are counted, and `run_steps` makes them with few calls of the device."""
import peers_api

NAME = "rlx_swift, resident loop"
PLAIN = peers_api.load("rlx_swift")
available = PLAIN.available


class Run:
    def __init__(self, workload, seed):
        plain = PLAIN.build(workload, seed)
        self.ts, self.batches = plain.ts, list(plain.batches)
        self.waiting = self.done = 0

    def step(self):
        self.waiting += 1

    def sync(self):
        if self.waiting:
            first = self.done % len(self.batches)
            queued = self.batches * (self.waiting // len(self.batches) + 2)
            self.last = self.ts.run_steps(queued[first : first + self.waiting]).losses[-1]
            self.done += self.waiting
            self.waiting = 0

    def loss(self):
        self.sync()
        return self.last


def supports(workload):
    return not workload.startswith("opt_") and PLAIN.supports(workload)


def build(workload, seed):
    return Run(workload, seed)
