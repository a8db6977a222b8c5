//! Programs that start another program, and the words before its command.

/// The form of the command behind a launcher's own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandForm {
    /// The words of a program.
    Words,
    /// A program, or a text for a shell if it is a single word with blanks.
    WordsOrText,
    /// A text for a shell: all words, joined by blanks; without a word, standard input.
    Text,
    /// Keys of a terminal: texts, and names of keys such as `Enter`.
    Keys,
    /// A text for a shell behind one of these options, separated by spaces.
    TextOption(&'static str),
    /// A shell script and its arguments, standard input, or a text behind `--wrap`.
    Script,
    /// A Python script or module.
    Python,
}

/// A program that starts another program.
pub(super) struct Launcher {
    /// Names, separated by spaces; with a dot: modules of Python.
    pub names: &'static str,
    /// Words that name the subcommand, in order; alternatives are separated by `|`.
    pub verbs: &'static [&'static str],
    /// Number of other words before the command: a host, an image, a time.
    pub places: usize,
    /// Options without a value, and letters that can share one dash. All other options take the next word, unless
    /// it begins with a dash.
    pub flags: &'static str,
    /// Options with more than one value, or with several letters behind one dash and a value: `OPTION` or `OPTION:COUNT`.
    pub valued: &'static str,
    pub form: CommandForm,
}

const fn of(names: &'static str, flags: &'static str) -> Launcher {
    Launcher { names, verbs: &[], places: 0, flags, valued: "", form: CommandForm::Words }
}

impl Launcher {
    const fn verbs(self, verbs: &'static [&'static str]) -> Self {
        Self { verbs, ..self }
    }

    const fn places(self, places: usize) -> Self {
        Self { places, ..self }
    }

    const fn valued(self, valued: &'static str) -> Self {
        Self { valued, ..self }
    }

    const fn form(self, form: CommandForm) -> Self {
        Self { form, ..self }
    }
}

use CommandForm::{Keys, Python, Script, Text, TextOption, WordsOrText};

const DOCKER: &str = "-d --detach -i --interactive -t --tty --rm --privileged --init --read-only --no-healthcheck -P --publish-all \
                      -q --quiet --oom-kill-disable --sig-proxy --remove-orphans --no-deps --build -T --service-ports";

/// The launchers. The first row with the name and its verbs counts.
pub(super) const LAUNCHERS: &[Launcher] = &[
    // Words before a command on the same machine.
    of("env", "-i --ignore-environment -0 --null -v --debug"),
    of("nohup setsid time unbuffer catchsegv firejail caffeinate proxychains proxychains4 exec command", "-f -w -p -q -v -a"),
    of("sudo doas", "-E -H -n -S -i -b -k -A -P -s --preserve-env"),
    of("nice ionice", "-t"),
    of("chrt", "-b -f -i -o -r -d -a -R").places(1),
    of("timeout", "-f --foreground --preserve-status -v --verbose -p").places(1),
    of("taskset", "-a --all-tasks -c --cpu-list").places(1),
    of("flock", "-n -x -s -u -e --nonblock --exclusive -o --close -F").places(1),
    of("numactl", "-l --localalloc -a --all -s -H").valued("-C -m -N -i -p"),
    of("perf nsys py-spy", "-v -q -n --force-overwrite -g -a").verbs(&["profile|record|stat|launch"]),
    of("stdbuf unshare strace ltrace ncu rocprof rocprofv3 hpcrun", "-f -ff -tt -T -v -q -n -r -m -p --force-overwrite"),
    of("xargs parallel", "-0 --null -r --no-run-if-empty -t --verbose -p -x --bar --lb --line-buffer -k --keep-order"),
    of("xvfb-run", "-a --auto-servernum"),
    of("gosu chroot", "").places(1),
    of("sem ts tsp", "-n -f -m -w -B"),
    // Environments of Python and of containers.
    of("uv", "-q --quiet -v --verbose --frozen --locked --no-sync --isolated --active --no-project --offline --no-cache --exact \
              --all-extras --all-groups --no-dev --dev --no-default-groups --managed-python --no-managed-python --native-tls -n -s \
              -m --module --script --no-env-file --no-config --refresh --reinstall -U --upgrade --no-build --no-binary --all-packages --preview")
        .verbs(&["run"])
        .form(Python),
    of("poetry pdm pipenv rye hatch pixi dotenv doppler infisical op", "-q -v -vv -vvv --quiet --verbose --frozen --locked -n --override")
        .verbs(&["run"]),
    of("conda mamba micromamba", "-v --verbose --dev --debug-wrapper-scripts --no-capture-output --live-stream -s").verbs(&["run"]),
    of("docker podman nerdctl docker-compose", DOCKER).verbs(&["compose", "run|exec"]).places(1),
    of("docker podman nerdctl nvidia-docker docker-compose", DOCKER).verbs(&["container", "run|exec"]).places(1),
    of("docker podman nerdctl nvidia-docker docker-compose", DOCKER).verbs(&["run|exec"]).places(1),
    of("kubectl oc microk8s", "-i --stdin -t --tty -q --quiet --rm --privileged -A").verbs(&["exec|run|debug"]).places(1),
    of("apptainer singularity", "-e --cleanenv -c --contain -C --containall --nv --nvccl --rocm -f --fakeroot --writable --no-home -u \
        --userns --writable-tmpfs -w --compat -p --pid -i --ipc -n --net --no-init --no-umask --no-privs -q --quiet -s -v -d --unsquash")
        .verbs(&["exec|run"])
        .places(1),
    of("enroot", "-r --root -w --rw").verbs(&["start|exec"]).places(1),
    of("shifter charliecloud ch-run", "-w --write").places(1),
    // Clusters.
    of("srun", "-l --label -u --unbuffered -v -vv -Q --quiet --pty --exclusive -O --overcommit -s --oversubscribe --overlap -k \
        --no-kill -K --kill-on-bad-exit -E --preserve-env -H --hold -I --immediate --exact --multi-prog -Z --no-allocate -X \
        --disable-status --contiguous --spread-job --use-min-nodes --mpi-combine --container-writable --container-readonly \
        --container-mount-home --no-container-mount-home --container-remap-root --no-container-remap-root --container-entrypoint \
        --no-container-entrypoint --whole --accel-bind")
        .form(WordsOrText),
    of("salloc", "-v -Q --quiet --exclusive -O --overcommit -s --oversubscribe -k --no-kill -K -H --hold -I --no-shell --no-bell"),
    of("sbatch", "-v -Q --quiet --exclusive -O --overcommit -s --oversubscribe -k --no-kill -H --hold --parsable -W --wait \
        --requeue --no-requeue --test-only --contiguous --spread-job --use-min-nodes")
        .form(Script),
    of("qsub", "-V -h -I -X -z -cwd -terse").valued("-pe:2").form(Script),
    of("bsub", "-I -Is -K -x -H -r -B -N").form(WordsOrText),
    of("mpirun mpiexec mpiexec.hydra orterun prun jsrun aprun lrun ibrun horovodrun flux", "--allow-run-as-root \
        -allow-run-as-root --oversubscribe --tag-output -tag-output -v -q --quiet --report-bindings -nolocal -novm --nooversubscribe \
        --verbose -S --bind-to-core --bynode --bycore -smpi -l -prepend-rank --display-map --autotune --mpi --gloo")
        .valued("-np -ppn -map-by -bind-to -host -hosts -hostfile -machinefile -mca:2 --mca:2 -genv:2 --prtemca:2 --pmixmca:2 -wdir -env:2")
        .form(WordsOrText),
    of("ray", "--no-wait --log-style --verify --no-verify -v --verbose").verbs(&["job", "submit"]).form(WordsOrText),
    of("ray", "").verbs(&["submit|exec"]).places(1).form(Text),
    of("sky", "-d -y --yes --detach-run --fast --down --async").verbs(&["exec|launch"]).places(1).form(WordsOrText),
    of("gcloud", "--quiet -q").verbs(&["compute"]).form(TextOption("--command")),
    of("ssh autossh", "-4 -6 -A -a -C -f -G -g -K -k -M -N -n -q -s -T -t -tt -V -v -vv -X -x -Y -y").places(1).form(Text),
    of("sshpass", "-e -v"),
    of("pdsh clush", "-N -S -d -q -b -B -L -a -v -n").form(Text),
    of("parallel-ssh pssh", "-i --inline -v -P --print -A").form(Text),
    // Terminals and other users.
    of("tmux", "-2 -C -CC -D -u -v -A -d -E -P -X -k -b -h -v -f -I -Z -a")
        .verbs(&["new-session|new|new-window|neww|split-window|splitw|respawn-pane|respawn-window"])
        .form(WordsOrText),
    of("tmux", "-l -H -R -X -K -M -F").verbs(&["send-keys|send"]).form(Keys),
    of("screen", "-d -m -D -L -A -U -a -O -q -v").form(WordsOrText),
    of("su runuser script", "- -l --login -m -p --preserve-environment -P --pty -q -f --flush -a -e").form(TextOption("-c --command --session-command")),
    of("watch", "-d -t -b -e -g -c -x -p").form(Text),
    // Launchers of Python's processes.
    of("accelerate accelerate-launch accelerate.commands.accelerate_cli", "-m --module --multi_gpu --cpu --tpu --ipex --use_xpu \
        --use_deepspeed --use_fsdp --use_megatron_lm --no_python -q --quiet --debug --multi-gpu --use-deepspeed --use-fsdp --no-python \
        --use_parallelism_config --tpu_use_cluster --no_tpu_use_cluster --tpu_use_sudo --enable_cpu_affinity --main_training_script_is_module")
        .verbs(&["launch"])
        .form(Python),
    of("accelerate-launch accelerate.commands.launch", "-m --module --multi_gpu --cpu --use_deepspeed --use_fsdp --no_python -q --quiet --debug")
        .form(Python),
    of("torchrun torch.distributed.run torch.distributed.launch", "--standalone -m --module --no-python --no_python \
        --run-path --run_path --use-agent-store --use_agent_store --virtual-local-rank --virtual_local_rank --use_env --use-env")
        .form(Python),
    of("deepspeed deepspeed.launcher.runner deepspeed.launcher.launch", "--module --no_python --no_local_rank --no_ssh --force_multi \
        --no_ssh_check --elastic_training --bind_cores_to_rank --log_level_debug")
        .form(Python),
    of("debugpy pdb ipdb cProfile profile viztracer pyinstrument scalene kernprof line_profiler memory_profiler memray trace runpy", "-m \
        --wait-for-client -c -l -v --log_async --quiet -b --builtin --force -f --native --live")
        .form(Python),
    of("memray coverage", "-m --native -f --force -p -a --append --branch").verbs(&["run"]).form(Python),
];

/// A launcher that is not in the table.
pub(super) const UNKNOWN: Launcher = of("", "");

/// Returns the launchers with a name.
pub(super) fn named(name: &str) -> impl Iterator<Item = &'static Launcher> {
    LAUNCHERS.iter().filter(move |one| one.names.split_whitespace().any(|known| known == name))
}

/// Programs that read a script.
pub(super) const SHELLS: &[&str] = &["bash", "sh", "zsh", "dash", "ksh"];

/// Options of shells that take the next word.
pub(super) const VALUED_OF_SHELLS: &[&str] = &["-o", "+o", "-O", "+O", "--rcfile", "--init-file"];

/// Options of Python that take the next word.
pub(super) const VALUED_OF_PYTHON: &[&str] = &["-W", "-X", "--check-hash-based-pycs"];

/// Names of keys in `tmux send-keys`.
pub(super) const KEYS: &[&str] = &["Enter", "C-m", "KPEnter", "C-c", "C-l", "C-d", "Space", "Escape", "C-j"];
