//! Secrets stay out of everything that a run shows, saves and sends; one from the environment is saved as its `${oc.env:…}` text.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::common::{small_run, succeed, trainer};

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

/// The arguments of a reward function that hold a secret at `{}`: by name, by place, in an address, in a list, in a header.
const PLACES: &[&str] = &[
    "api_key={}",
    "url=https://me:{}@host/path",
    "password={}",
    "env_vars.OPENED={}",
    "headers={cookie: 'sid={}', accept: text/plain}",
    "signed='https://h/x?page=2&sig={}'",
    "posted='https://h/x?page=2&key={}'",
    "relative='h/x?token={}'",
    "pw={}",
    "pass={}",
    "auth={}",
    "cookies={sid: {}}",
    "options={key: sk-{}}",
    "accessToken={}",
    "clientSecret={}",
    "private-key={}",
    "openai_key={}",
    "slack={webhook_url: 'https://hooks/{}'}",
    "sentry_dsn={}",
    "credentials={login: {}}",
    "request_headers.X-Session={}",
    "listed={headers: ['X-Session: {}']}",
    "args=[--port,1,--token,{}]",
    "command='run --api-key {} now'",
    "text='Authorization: Bearer {}'",
    "scheme='Bearer {}'",
    "servers=[{api_key: {}}]",
    "nested={deep: {secret: {}}}",
];

/// The secret of a place. All its forms in output contain it.
fn secret_of(place: usize) -> String {
    format!("zq{place:02}hidden")
}

/// Secrets of the environment: read by a key, not read, with characters that every format writes differently, and one of
/// several lines.
const VARIABLES: [(&str, &str, &str); 4] = [
    ("MY_SERVICE", "sk-from-environment-2", "from-environment-2"),
    ("WANDB_API_KEY", "wandb-of-environment-3", "of-environment-3"),
    ("MY_PASSWORD", "a\"b\\c<d>&'é\tquoted-4", "quoted-4"),
    ("MY_PRIVATE_KEY", "-----BEGIN KEY-----\nfirst-line-of-key-5\nsecond-line-of-key-5\n-----END KEY-----", "line-of-key-5"),
];

#[test]
fn a_run_tells_nobody_its_secrets_and_goes_on_without_saving_them() {
    let folder = tempfile::tempdir().unwrap();
    let reward = folder.path().join("reward.py");
    // The function prints its arguments, and raises an error at the second step.
    let code = "import os\ndef compute_score(data_source, solution_str, ground_truth, extra_info=None, **given):\n    \
                print(given)\n    if os.path.exists(given['since']):\n        raise ValueError(given)\n    return 1.0\n";
    fs::write(&reward, code).unwrap();
    let run = folder.path().join("run");
    let since = run.join("global_step_1");
    let kwargs = "custom_reward_function.reward_kwargs";
    let command = |more: &[&str]| {
        let mut command =
            small_run(&run, &["trainer.total_training_steps=2", "trainer.save_freq=1", "trainer.val_before_train=false"]);
        command.arg(format!("custom_reward_function.path={}", reward.display()));
        command.arg(format!("+{kwargs}.since={}", since.display()));
        command.args([
            "trainer.test_freq=-1",
            "trainer.logger=[console,file,tensorboard,wandb]",
            &format!("+{kwargs}.token='${{oc.env:MY_SERVICE}}'"),
            &format!("+{kwargs}.again='${{{kwargs}.token}}'"),
            &format!("+{kwargs}.quoted='${{oc.env:MY_PASSWORD}}'"),
            &format!("+{kwargs}.pem='${{oc.env:MY_PRIVATE_KEY}}'"),
            &format!("+{kwargs}.home='${{oc.env:MY_HOME,/tmp}}/x'"),
        ]);
        command.args(PLACES.iter().enumerate().map(|(i, place)| format!("+{kwargs}.{}", place.replace("{}", &secret_of(i)))));
        command.args(more).envs(VARIABLES.map(|(name, value, _)| (name, value)));
        command.env("WANDB_MODE", "offline").env("RUST_LOG", "debug");
        command
    };
    let output = command(&[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let shown = [output.stdout.clone(), output.stderr.clone()].concat();
    assert!(has(&shown, "ValueError") && has(&shown, "'api_key': '***'"), "{}", String::from_utf8_lossy(&shown));
    let report = folder.path().join("report.html");
    succeed(trainer(&["report", run.to_str().unwrap(), "--output", report.to_str().unwrap()]));
    let written: Vec<(PathBuf, Vec<u8>)> =
        files(folder.path()).into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect();
    assert!(
        ["run.json", "trainer.log", "config.yaml", "report.html"]
            .iter()
            .all(|name| written.iter().any(|(file, _)| file.ends_with(name)))
    );
    let secrets: Vec<String> = (0..PLACES.len()).map(secret_of).chain(VARIABLES.map(|(_, _, part)| part.to_owned())).collect();
    let tells_none = |name: &str, bytes: &[u8]| {
        if let Some((i, secret)) = secrets.iter().enumerate().find(|(_, secret)| has(bytes, secret)) {
            panic!("{secret} of {:?} is in {name}: {}", PLACES.get(i), String::from_utf8_lossy(bytes));
        }
    };
    tells_none("the console", &shown);
    written.iter().for_each(|(file, bytes)| tells_none(&file.display().to_string(), bytes));
    let of_run = run.to_str().unwrap();
    for args in [&["runs", "show", of_run][..], &["runs", "show", of_run, "--json"], &["runs", "ls", of_run, "--json"]] {
        tells_none(args[1], &succeed(trainer(args)).stdout);
    }
    // The same settings in every command that shows settings.
    let settings: Vec<_> = command(&[]).get_args().map(std::ffi::OsStr::to_os_string).collect();
    for more in [&["config", "show"][..], &["config", "show", "--sources"], &["config", "show", "--format", "json"], &[]] {
        let mut show = trainer(more);
        show.args(&settings).envs(VARIABLES.map(|(name, value, _)| (name, value)));
        if more.is_empty() {
            show.arg("--dry-run=plan");
        }
        let output = show.output().unwrap();
        assert!(output.status.success(), "{more:?}: {}", String::from_utf8_lossy(&output.stderr));
        tells_none(&format!("{more:?}"), &[output.stdout, output.stderr].concat());
    }
    let saved = fs::read_to_string(run.join("global_step_1/config.yaml")).unwrap();
    for line in ["api_key: '***'", "token: '${oc.env:MY_SERVICE}'", "again: '${oc.env:MY_SERVICE}'", "home: '/tmp/x'"] {
        assert!(saved.contains(line) || saved.contains(&line.replace('\'', "")), "{line} is not in {saved}");
    }
    // The same command resumes without reporting changes, and finishes once the reward no longer fails.
    fs::write(&reward, code.replace("os.path.exists(given['since'])", "False")).unwrap();
    let output = command(&[]).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && message.contains("resumed from") && !message.contains("changed since"), "{message}");
    // The saved configuration alone is not enough: hidden values must be given again.
    let config = run.join("global_step_1/config.yaml");
    let mut again = trainer(&["--config", config.to_str().unwrap(), "--dry-run=plan"]);
    let refused = again.envs(VARIABLES.map(|(name, value, _)| (name, value))).output().unwrap();
    let message = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{message}");
    for key in ["api_key", "url", "password"] {
        assert!(message.contains(&format!("`{kwargs}.{key}` is a secret")), "{message}");
    }
}

/// Conversions read secrets from scripts, options, YAML files and variables; recipes and messages never show one.
#[test]
fn conversions_hide_secrets_wherever_a_command_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let verl = "python3 -m verl.trainer.main_ppo data.train_files=a.parquet actor_rollout_ref.model.path=m";
    let place = "+ray_init.runtime_env.env_vars";
    let ray = "python3 -m openrlhf.cli.train_ppo_ray --pretrain m --prompt_data d.jsonl --remote_rm_url http://x/get";
    let grpo = "trl grpo --model_name_or_path m --dataset_name d.jsonl --reward_funcs accuracy_reward";
    let scripts = [
        ("1.sh", "from-verl", format!("export WANDB_API_KEY=the-key-1\n{verl} {place}.WANDB_API_KEY=$WANDB_API_KEY\n")),
        ("2.sh", "from-verl", format!("A=the-key-2\n{verl} {place}.LOGIN=$A +trainer.hf_token=the-key-3\n")),
        ("3.sh", "from-verl", format!("{verl} +reward_model.reward_kwargs.api_key=the-key-1 {place}.OPENAI_KEY=the-key-2\n")),
        ("4.sh", "from-verl", format!("{verl} +actor_rollout_ref.rollout.engine_kwargs.vllm.api_key=the-key-1\n")),
        ("5.sh", "from-trl", format!("T=the-key-1\n{grpo} --hub_token $T --openai_api_key the-key-2\n")),
        ("6.sh", "from-trl", format!("OPENAI_KEY=the-key-3 {grpo} --hub_token=the-key-1\n")),
        (
            "7.yaml",
            "from-trl",
            "hub_token: the-key-1\nmodel_name_or_path: m\ndataset_name: d.jsonl\nenv: {LOGIN: the-key-2}\n".into(),
        ),
        ("8.sh", "from-openrlhf", format!("{ray} --use_wandb the-key-1 --logger.wandb.key the-key-2\n")),
        (
            "9.sh",
            "from-openrlhf",
            format!(
                "ray job submit --runtime-env-json='{{\"env_vars\": {{\"LOGIN\": \"the-key-1\"}}}}' -- {ray} --ckpt the-key-1\n"
            ),
        ),
    ];
    for (name, command, text) in scripts {
        fs::write(at(name), &text).unwrap();
        let file = format!("@{}", at(name));
        // The same command in quotes, in which a shell replaces no variables.
        let forms = if text.contains('$') || name.ends_with("yaml") { vec![&file] } else { vec![&file, &text] };
        for form in forms {
            let mut args = vec![command, form.as_str()];
            args.extend(["--algo", "grpo"].iter().filter(|_| name.ends_with("yaml")));
            let output = trainer(&args).output().unwrap();
            let shown = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
            assert!(!shown.is_empty() && !shown.contains("the-key"), "{name}: {shown}");
        }
    }
}

/// Files of tools, users and servers hold secrets too. Each program here shows all that it gets, and ends.
#[test]
fn files_of_tools_hide_their_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let secret = "zq-hidden-1";
    let config = json!({
        "type": "native",
        "api_key": secret,
        "clientSecret": secret,
        "env": {"ANY": secret},
        "headers": {"X-Any": secret},
        "url": format!("https://me:{secret}@host/x?any={secret}"),
        "arguments": ["--token", secret, "--port", "1"],
    });
    let shows = "class Shows:\n    def __init__(self, *given):\n        print(given)\n        raise ValueError(given)\n";
    fs::write(at("shows.py"), shows).unwrap();
    let program = "import os, sys\nprint(dict(os.environ), sys.argv, file=sys.stderr, flush=True)\n";
    fs::write(at("server.py"), program).unwrap();
    let parameters = json!({"type": "object", "properties": {}, "required": []});
    let schema = json!({"type": "function", "function": {"name": "t", "description": "", "parameters": parameters}});
    let tool = json!({"class_name": "shows.Shows", "config": config, "tool_schema": schema});
    let args = json!([
        at("server.py"),
        "--token",
        secret,
        format!("--api-key={secret}"),
        "-H",
        format!("Authorization: Bearer {secret}"),
        format!("https://h/?any={secret}")
    ]);
    let address = json!({
        "url": format!("http://127.0.0.1:9/mcp?any={secret}"),
        "headers": {"X-Any": secret, "Authorization": format!("Bearer {secret}"), "Cookie": format!("a={secret}")},
    });
    let servers = [
        ("program", json!({"command": "python3", "args": args, "env": {"ANY": secret}})),
        ("address", address),
        ("wrong", json!({"url": "http://127.0.0.1:9/mcp", "env": {"ANY": secret}, "auth": secret})),
    ];
    let mut files = vec![("tool_config_path", "tools.yaml", json!({"tools": [tool]}).to_string())];
    for (name, server) in servers {
        fs::write(at(&format!("{name}.json")), json!({"mcpServers": {name: server}}).to_string()).unwrap();
        let mcp = json!({"mcp_servers_config_path": at(&format!("{name}.json")), "tool_selected_list": []});
        let entry = json!({"class_name": "verl.tools.mcp_base_tool.MCPBaseTool", "config": {"type": "mcp"}, "mcp": mcp});
        files.push(("tool_config_path", name, json!({"tools": [entry]}).to_string()));
    }
    let user = json!({"interaction": [{"name": "u", "class_name": "shows.Shows", "config": config}]});
    files.push(("interaction_config_path", "users.yaml", user.to_string()));
    files.push(("tool_config_path", "broken.yaml", format!("tools:\n  - api_key: {secret}\n   - [\n")));
    for (key, name, text) in files {
        fs::write(at(name), text).unwrap();
        let mut command = trainer(&["--config", "recipes/calculator/grpo.yaml", "--dry-run=plan"]);
        command.arg(format!("actor_rollout_ref.rollout.multi_turn.{key}={}", at(name)));
        if key != "tool_config_path" {
            command.arg("actor_rollout_ref.rollout.multi_turn.tool_config_path=null");
        }
        let output = command.env("PYTHONPATH", folder.path()).env("RUST_LOG", "debug").output().unwrap();
        let shown = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}: {shown}");
        assert!(!shown.contains(secret), "{name}: {shown}");
    }
}

#[test]
fn errors_and_printed_configurations_hide_what_they_quote() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.yaml");
    fs::write(&broken, "trainer:\n  api_key: sk-in-a-file\n   bad: [\n").unwrap();
    let url = "reward_model.remote_url=ftp://me:pass4word@host/x?token=in-a-query";
    for args in [
        &["config", "show", "+trainer.api_key=sk-literal-1"][..],
        &["config", "show", "+trainer.my_secret={a: sk-literal-1}", "--sources"],
        &["config", "show", "--untyped", "--format", "json", "+trainer.api_key=sk-literal-1"],
        &["trainer.api_key=sk-literal-1"],
        &["+trainer.api_key='sk-literal-1"],
        &["--config", broken.to_str().unwrap()],
        &[url],
        &["reward.sandbox_fusion.url=http://me:pass4word@127.0.0.1:1/run_code", "--dry-run=plan"],
        &["trainer.experiment_name=${oc.env:HF_TOKEN}", "--dry-run=plan"],
        &["fetch", "models/a/b"],
    ] {
        let mut command = trainer(args);
        command.env("HF_TOKEN", "hf-of-environment").env("HF_ENDPOINT", "http://127.0.0.1:9/?any=in-a-query");
        let output = command.env_remove("HF_HUB_OFFLINE").output().unwrap();
        let shown = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        for secret in ["sk-literal-1", "sk-in-a-file", "pass4word", "in-a-query", "hf-of-environment"] {
            assert!(!shown.contains(secret), "{args:?}: {shown}");
        }
        assert!(!shown.is_empty(), "{args:?}");
    }
}
