"""Three sites, a process each, train a model over TCP, with an epsilon for each of their rows."""
import multiprocessing as mp, os, tempfile
import hushsum, numpy as np

JOB = hushsum.Job.parse("""
name = "three-sites"
rounds = 8
parties.roster = "roster.txt"
model.tensor = [{ name = "w", shape = [2] }, { name = "b", shape = [1] }]
server.rate = 4.0
privacy = { unit = "record", records = 3000, noise = "discrete-gaussian", epsilon = 2.0, clip = 1.0,
            submit_after = "200ms" }
""")

def rows(site):  # made up: two measurements of 1,000 patients, and which of two groups each is in
    x = np.random.default_rng(site).uniform(-1, 1, (1000, 2))
    return x, x.sum(1) > 0.25

def gradients(model, rows):  # one for each row, of a logistic regression
    x, y = rows
    error = (1 / (1 + np.exp(-(x * model["w"]).sum(1) - model["b"])) - y)[:, None]
    return {"w": error * x, "b": error}

def kept(path):  # a site's key: made once, since no other opens the state when it is started again
    if not os.path.exists(path):
        with open(path, "xb", opener=lambda p, flags: os.open(p, flags, 0o600)) as f:
            f.write(os.urandom(32))
    with open(path, "rb") as f:
        return f.read()

def site(i, own, roster, url, key, folder):
    return hushsum.join(JOB.settle(roster), url=url, identity=own, coordinator=key, rows=rows(i),
                        train=gradients, state=f"{folder}/{i}", key=kept(f"{folder}/{i}.key"))

if __name__ == "__main__":
    own, *keys = [hushsum.Identity.generate() for _ in range(4)]
    roster = {f"site-{i}": key.public for i, key in enumerate(keys)}
    coordinator = hushsum.Coordinator(JOB.settle(roster), identity=own)
    with tempfile.TemporaryDirectory() as folder, mp.get_context("spawn").Pool(3) as pool:
        models = pool.starmap_async(site, [(i, key, roster, coordinator.url, own.public, folder)
                                           for i, key in enumerate(keys)])
        model = coordinator.run(progress=lambda step: print(step.text))
        assert all((m["w"] == model["w"]).all() for m in models.get())
    x, y = rows(3)
    accuracy = ((x @ model["w"] + model["b"] > 0) == y).mean()
    print(f"accuracy {accuracy:.3f}, {coordinator.settled.spent()}")
    assert accuracy > 0.85
