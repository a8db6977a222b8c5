//! Secrets by name and by place, and texts without them.

use super::{hide, is_hidden, is_secret, remember_in, remember_words};

#[test]
fn names_decide_what_is_secret() {
    for name in [
        "api_key",
        "trainer.wandb_api_key",
        "WANDB_API_KEY",
        "HF_TOKEN",
        "token",
        "a.access-token",
        "AWS_SECRET_ACCESS_KEY",
        "client_secret",
        "db.password",
        "MLFLOW_TRACKING_PASSWORD",
        "Authorization",
        "private_key",
        "OPENAI_APIKEY",
        "OPENAI_KEY",
        "env_vars.AZURE_KEY",
        "ray_init.runtime_env.env_vars.MY_LOGIN",
        "custom_reward_function.reward_kwargs.pw",
        "headers.cookie",
        "reward_kwargs.cookies",
        "client.auth.login",
        "headers.X-Session",
        "logger.wandb.key",
        "use_wandb",
    ] {
        assert!(is_secret(name), "{name}");
    }
    for name in [
        "data.prompt_key",
        "reward_fn_key",
        "eos_token",
        "pad_token",
        "stop_token_ids",
        "max_tokens",
        "tokenizer",
        "reward.remote_token_env",
        "token_env",
        "log_prob_max_token_len_per_gpu",
        "key",
        "PWD",
        "secret_name",
        "monkey",
        "loss_agg_mode",
        "token-mean",
        "env_vars.NCCL_DEBUG",
        "env_vars.PYTHONPATH",
        "headers.content-type",
        "data.response_key",
    ] {
        assert!(!is_secret(name), "{name}");
    }
}

#[test]
fn remembered_values_and_users_in_addresses_are_hidden() {
    remember_in("reward.kwargs={api_key: sk-test-1, n: 5} token='with spaces' password=12345678 x.secret=${oc.env:A_SECRET}");
    remember_in("api_key='unclosed-test-1");
    remember_in("my_secret={a: nested-test-1, b: x: nested-test-2}");
    remember_in("answer_token: 4096000, user.token=tok-test-1");
    remember_in("url=https://host/x?access_token=query-test-1&y=1");
    // The length limit of a value falls inside a character.
    remember_in(&format!("api_key={}é and more", "long-test-".repeat(51) + "x"));
    remember_in("'env_vars': {'A_LOGIN': 'place-test-1', 'NCCL_DEBUG': 'WARNING', 'FLAG': 'true'}, 'working_dir': '/root/x'");
    remember_in(r#"--runtime-env-json="{\"env_vars\": {\"B_LOGIN\": \"place-test-2\"}}""#);
    remember_in("os.environ['ANY_KEY'] = 'python-test-1'");
    remember_in("cookies={sid: jar-test-1} options={key: sk-plain-1, path: /a} sort={key: a_column_of_rows}");
    remember_in("http://host/x?model=qwen-test&sig=query-test-2&key=query-test-3");
    remember_in("x --hub_token line-test-1 --use_wandb line-test-2 --response_key a-column --save_path /a/b");
    remember_words(&["--hub-token", "word-test-1", "--use_wandb", "true", "--hub_token", "--flag"]);
    for (text, shown) in [
        ("place-test-1 WARNING true /root/x place-test-2", "*** WARNING true /root/x ***"),
        ("jar-test-1 sk-plain-1 a_column_of_rows", "*** *** a_column_of_rows"),
        ("python-test-1 qwen-test query-test-2 query-test-3", "*** qwen-test *** ***"),
        ("line-test-1 line-test-2 a-column /a/b word-test-1 --flag", "*** *** a-column /a/b *** --flag"),
        ("error: sk-test-1 is wrong", "error: *** is wrong"),
        ("with spaces 12345678", "*** ***"),
        ("api_key='unclosed-test-1", "api_key='***"),
        ("nested-test-1, nested-test-2", "***, ***"),
        ("4096000 tok-test-1", "4096000 ***"),
        ("?access_token=query-test-1&y=1", "?access_token=***&y=1"),
        ("at https://me:pass@host:80/p, ftp://me@host", "at https://***@host:80/p, ftp://***@host"),
        ("a@b.c https://host/@me ${oc.env:A_SECRET}", "a@b.c https://host/@me ${oc.env:A_SECRET}"),
    ] {
        assert_eq!(hide(text), shown);
    }
    assert!(is_hidden("***") && is_hidden(&hide("https://a:b@c")) && !is_hidden("a ***"));
}
