//! Secrets by name and by place, and texts without them.

use super::{hide, is_hidden, is_secret, remember_in, remember_listed, remember_words};

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
        "accessToken",
        "clientSecret",
        "privateKey",
        "reward_kwargs.auth",
        "pass",
        "slack.webhook_url",
        "sentry_dsn",
        "request_headers.X-Session",
        "http-headers.x-session",
        "extraHeaders.X-Session",
        "credentials.login",
        "MYSECRET",
        "HFTOKEN",
        "PGPASSWORD",
        "db.dbpassword",
        "authtoken",
        "clientapikey",
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
        "pass_env",
        "passes",
        "author",
        "dsn_count",
        "maxTokens",
        "padToken",
        "webhook_timeout_path",
        "detoken",
        "EOSTOKEN",
        "padtoken",
        "headers",
    ] {
        assert!(!is_secret(name), "{name}");
    }
}

/// A name that ends in `key` names a column or holds a secret; its value tells which.
#[test]
fn the_value_of_a_key_decides() {
    for (name, value, is_key) in [
        ("app_key", "4fK9x2", true),
        ("openai_key", "sk-abcdefgh", true),
        ("subscription-key", "0123456789abcdef", true),
        ("licenseKey", "ABCD-EFGH", true),
        ("key", "9f8e7d6c5b4a39281706", true),
        ("data.prompt_key", "Problem_2", false),
        ("answer_key", "Answer1", false),
        ("my_key", "extra_info.answer", false),
        ("my_key", "12", false),
        ("my_key", "a text of words 1", false),
        ("fits_key", "true", false),
        ("key", "Column7", false),
    ] {
        assert_eq!(super::is_secret_value(name, value), is_key, "{name}={value}");
    }
}

/// A secret is hidden also where it is quoted: in JSON, Python, HTML, an address, and line by line.
#[test]
fn quoted_secrets_are_hidden() {
    let secret = "a\"b\\c<d>&'é\ttest-form-1";
    let pem = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA7test2\nq83vEiM4RWeYqbvM3test3\n-----END KEY-----";
    [secret, pem].iter().for_each(|value| super::remember(value));
    let json = serde_json::json!(secret).to_string();
    for text in [
        secret,
        &json,
        r#"'a"b\\c<d>&\'é\ttest-form-1'"#,
        "a&quot;b\\c&lt;d&gt;&amp;'é\ttest-form-1",
        "?x=a%22b%5Cc%3Cd%3E%26%27%C3%A9%09test-form-1",
        "MIIEpAIBAAKCAQEA7test2",
        &pem.replace('\n', "\\n"),
        &pem.replace('\n', "\n      "),
    ] {
        let shown = hide(text);
        assert!(!shown.contains("test"), "{shown}");
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
    remember_in("args: [\"--token\", \"list-test-1\", '--api-key', 'list-test-2', --secret, list-test-3]");
    remember_in("Authorization: Bearer bearer-test-1, basic arithmetic, Bearer tokens; Basic dXNlcjpwYXNz4test");
    remember_in("h/x?page=2&token=query-test-4 what? a=plain-test");
    remember_listed("request_headers", "X-Session: listed-test-1");
    remember_listed("rows", "X-Session: listed-test-2");
    remember_words(&["--hub-token", "word-test-1", "--use_wandb", "true", "--hub_token", "--flag"]);
    for (text, shown) in [
        ("place-test-1 WARNING true /root/x place-test-2", "*** WARNING true /root/x ***"),
        ("jar-test-1 sk-plain-1 a_column_of_rows", "*** *** a_column_of_rows"),
        ("python-test-1 qwen-test query-test-2 query-test-3", "*** qwen-test *** ***"),
        ("line-test-1 line-test-2 a-column /a/b word-test-1 --flag", "*** *** a-column /a/b *** --flag"),
        ("list-test-1 list-test-2 list-test-3", "*** *** ***"),
        ("bearer-test-1 arithmetic Bearer tokens dXNlcjpwYXNz4test", "*** arithmetic Bearer tokens ***"),
        ("query-test-4 plain-test listed-test-1 listed-test-2", "*** plain-test *** listed-test-2"),
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
