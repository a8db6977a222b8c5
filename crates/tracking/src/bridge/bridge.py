"""Passes rows of metrics to the Python package of a tracker.

Requests are lines of JSON on standard input: a session, then rows, then how the run ended; each is answered by one line of JSON
on standard output. Output of the package itself goes to standard error, and its standard input is empty.
"""

import importlib
import json
import math
import os
import queue
import signal
import sys
import threading

# Seconds that a package has to finish once the trainer has ended.
GRACE = 20


class Swanlab:
    """SwanLab, started as in verl/utils/tracking.py."""

    def open(self, swanlab, session):
        self.swanlab = swanlab
        key = os.environ.get("SWANLAB_API_KEY")
        if key:
            swanlab.login(key)
        mode = os.environ.get("SWANLAB_MODE", "cloud")
        known = {"id": session["remembered"], "resume": "allow"} if session["remembered"] else {}
        run = swanlab.init(
            project=session["project"],
            experiment_name=session["experiment"],
            config={"FRAMEWORK": "burnish", **session["config"]},
            logdir=os.environ.get("SWANLAB_LOG_DIR", "swanlog"),
            mode=mode,
            **known,
        )
        return getattr(run, "id", None)

    def log(self, step, metrics, time):
        self.swanlab.log(metrics, step=step)

    def table(self, step, name, columns, rows):
        table = self.swanlab.echarts.Table()
        table.add(headers=["step", *columns], rows=[[step, *row] for row in rows])
        self.swanlab.log({name: table}, step=step)

    def finish(self, exit):
        if exit == "finished":
            self.swanlab.finish()
        else:
            self.swanlab.finish("aborted" if exit == "interrupted" else "crashed", error=f"the run {exit}")


class Trackio:
    """Trackio, which resumes a run by its name: the last run with that name in the project."""

    def open(self, trackio, session):
        self.trackio = trackio
        resume = "allow" if session["remembered"] else "never"
        trackio.init(project=session["project"], name=session["experiment"], config=session["config"], resume=resume)
        return session["experiment"]

    def log(self, step, metrics, time):
        self.trackio.log(metrics, step=step)

    def table(self, step, name, columns, rows):
        self.trackio.log({name: self.trackio.Table(columns=columns, data=rows)}, step=step)

    def finish(self, exit):
        self.trackio.finish()


class Clearml:
    """ClearML, with one task per run; a resumed task keeps the values of its steps."""

    def open(self, clearml, session):
        known = session["remembered"]
        # The offline session of another process cannot be resumed.
        resumes = bool(known) and not known.startswith("offline-")
        self.task = clearml.Task.init(
            task_name=session["experiment"],
            project_name=session["project"],
            reuse_last_task_id=known if resumes else False,
            continue_last_task=0 if resumes else False,
            output_uri=False,
        )
        self.task.connect_configuration(session["config"], name="Hyperparameters")
        self.logger = self.task.get_logger()
        return self.task.id

    @staticmethod
    def place(name):
        title, _, series = name.partition("/")
        return {"title": title, "series": series or title}

    def log(self, step, metrics, time):
        for name, value in metrics.items():
            if math.isfinite(value):
                self.logger.report_scalar(**self.place(name), value=value, iteration=step)
            else:
                # ClearML's curves would show 0.
                self.logger.report_text(f"step {step}: {name} is {value}", print_console=False)

    def table(self, step, name, columns, rows):
        table = [["step", *columns], *([step, *row] for row in rows)]
        self.logger.report_table(**self.place(name), table_plot=table, iteration=step)

    def finish(self, exit):
        if exit == "failed":
            self.task.mark_failed(ignore_errors=True, status_reason="the run failed")
        elif exit == "interrupted":
            self.task.mark_stopped(force=True, status_message="the run was interrupted")
        self.task.close()


class VemlpWandb:
    """Volcengine's copy of W&B, started as in verl/utils/tracking.py."""

    def open(self, platform, session):
        needed = ["VOLC_ACCESS_KEY_ID", "VOLC_SECRET_ACCESS_KEY", "MLP_TRACKING_REGION"]
        missing = [name for name in needed if name not in os.environ]
        if missing:
            raise ValueError(f"the environment has no {', '.join(missing)}")
        self.wandb = importlib.import_module(f"{platform.__name__}.wandb")
        key, secret, region = (os.environ[name] for name in needed)
        platform.init(ak=key, sk=secret, region=region)
        known = {"id": session["remembered"], "resume": "allow"} if session["remembered"] else {}
        run = self.wandb.init(
            project=session["project"], name=session["experiment"], config=session["config"], sync_tensorboard=True, **known
        )
        return getattr(run, "id", None)

    def log(self, step, metrics, time):
        self.wandb.log(metrics, step=step)

    def table(self, step, name, columns, rows):
        self.wandb.log({name: self.wandb.Table(columns=columns, data=rows)}, step=step)

    def finish(self, exit):
        self.wandb.finish(exit_code=0 if exit == "finished" else 1)


class Mlflow:
    """MLflow, for addresses other than those of servers; started as in verl/utils/tracking.py."""

    STATUS = {"finished": "FINISHED", "interrupted": "KILLED", "failed": "FAILED"}

    def open(self, mlflow, session):
        self.mlflow = mlflow
        mlflow.set_tracking_uri(os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:////tmp/mlruns.db")
        known = os.environ.get("MLFLOW_RUN_ID") or session["remembered"]
        if known:
            run = mlflow.start_run(run_id=known)
        else:
            experiment = mlflow.set_experiment(session["project"])
            run = mlflow.start_run(experiment_id=experiment.experiment_id, run_name=session["experiment"])
        # A parameter never changes in MLflow, and a call that would change one fails as a whole.
        new = [(key, value) for key, value in session["config"].items() if key not in run.data.params]
        for first in range(0, len(new), 100):
            mlflow.log_params(dict(new[first : first + 100]))
        return run.info.run_id

    def log(self, step, metrics, time):
        pairs = list(metrics.items())
        for first in range(0, len(pairs), 1000):
            self.mlflow.log_metrics(dict(pairs[first : first + 1000]), step=step, timestamp=time)

    def table(self, step, name, columns, rows):
        records = [dict(zip(columns, row)) for row in rows]
        self.mlflow.log_dict(records, f"{name.replace('/', '_')}_step{step}.json")

    def finish(self, exit):
        self.mlflow.end_run(self.STATUS[exit])


TRACKERS = {"swanlab": Swanlab, "trackio": Trackio, "clearml": Clearml, "vemlp_wandb": VemlpWandb, "mlflow": Mlflow}


def apart(descriptor, instead):
    """Moves a file descriptor to a private copy, and puts `instead` in its old place."""
    copy = os.dup(descriptor)
    os.dup2(instead, descriptor)
    return copy


def described(error):
    return f"{type(error).__name__}: {error}"


def opened(tracker, session):
    try:
        module = importlib.import_module(session["module"])
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == session["module"]:
            return {"missing": True}
        return {"error": f"the package {session['module']} cannot be imported: {described(error)}"}
    except Exception as error:
        return {"error": f"the package {session['module']} cannot be imported: {described(error)}"}
    try:
        return {"remember": tracker.open(module, session)}
    except (Exception, SystemExit) as error:
        return {"error": described(error)}


def done(tracker, request):
    try:
        if "exit" in request:
            tracker.finish(request["exit"])
        elif "rows" in request:
            tracker.table(request["step"], request["name"], request["columns"], request["rows"])
        else:
            tracker.log(request["step"], request["metrics"], request["time"])
        return {}
    except (Exception, SystemExit) as error:
        return {"error": described(error)}


def end(code):
    """Ends the process without waiting for threads of the package."""
    sys.stderr.flush()
    os._exit(code)


def kill_all():
    os.killpg(0, signal.SIGKILL)


def read(lines, requests):
    """Reads requests on a separate thread, to notice the trainer's end at once, even while the package is busy."""
    for line in lines:
        requests.put(line)
    timer = threading.Timer(GRACE, kill_all)
    timer.daemon = True
    timer.start()
    requests.put(None)


def main():
    lines = os.fdopen(apart(0, os.open(os.devnull, os.O_RDONLY)), encoding="utf-8")
    replies = os.fdopen(apart(1, 2), "w", encoding="utf-8")

    def reply(answer):
        replies.write(json.dumps(answer) + "\n")
        replies.flush()

    requests = queue.SimpleQueue()
    threading.Thread(target=read, args=(lines, requests), daemon=True).start()
    session = json.loads(requests.get() or "null")
    if session is None:
        return end(1)
    tracker = TRACKERS[session["tracker"]]()
    answer = opened(tracker, session)
    try:
        reply(answer)
        if "remember" not in answer:
            return end(1)
        while (line := requests.get()) is not None:
            request = json.loads(line)
            reply(done(tracker, request))
            if "exit" in request:
                return end(0)
    except BrokenPipeError:
        pass
    # The trainer died.
    done(tracker, {"exit": "failed"})
    end(1)


main()
