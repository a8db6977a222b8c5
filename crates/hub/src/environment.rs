//! The environment variables of the Hub, with the same meanings as in the `huggingface_hub` package.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use regex::{Captures, Regex};
use ureq::Agent;
use ureq::http::{HeaderValue, Uri};

use burnish_util::foreign;
use burnish_util::secret::{hide, remember};

/// The address of the Hub; `HF_ENDPOINT` replaces it by a mirror or a private server.
pub(crate) const HUB: &str = "https://huggingface.co";
/// The default of `HF_HUB_ETAG_TIMEOUT` and `HF_HUB_DOWNLOAD_TIMEOUT`, in seconds.
const TIMEOUT: u64 = 10;

/// The settings of this process for the Hub: its address, the cache, timeouts, and the token.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Address of the Hub, without a trailing slash.
    pub endpoint: Uri,
    /// Folder of the cache, with one folder for each repository.
    pub cache: PathBuf,
    /// True if requests to the Hub are forbidden.
    pub offline: bool,
    /// Longest wait for a connection, and for the beginning of a reply.
    pub(crate) reply_timeout: Duration,
    /// Longest silence within a reply.
    pub(crate) read_timeout: Duration,
    /// The waits between attempts.
    pub waits: RetryWaits,
    /// True if progress bars are allowed.
    pub has_bar: bool,
    token: Option<String>,
    /// True if downloads send the token; uploads always do.
    is_implicit: bool,
}

/// The waits between attempts of a request.
#[derive(Clone, Copy, Debug)]
pub struct RetryWaits {
    /// The wait before the second attempt; it doubles with each further attempt.
    pub first: Duration,
    /// The longest accepted `Retry-After`.
    pub longest: Duration,
    /// The longest total of waits that servers ask for; the Hub's limits are for 5 minutes.
    pub total: Duration,
}

impl RetryWaits {
    /// The waits for the Hub.
    pub(crate) const PATIENT: Self =
        Self { first: Duration::from_millis(500), longest: Duration::from_secs(60), total: Duration::from_secs(600) };
    /// Waits for tests, which replace the server.
    pub const SHORT: Self =
        Self { first: Duration::from_millis(1), longest: Duration::from_millis(20), total: Duration::from_millis(200) };
}

impl Environment {
    /// Reads the variables of this process.
    ///
    /// # Errors
    /// If a variable has an invalid value; the message names it.
    pub fn from_env() -> Result<Self> {
        Self::read(&|name| env::var(name).ok())
    }

    /// Reads variables. An empty variable counts as unset.
    ///
    /// # Errors
    /// If a variable has an invalid value; the message names it.
    pub fn read(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let folder = |name: &str| set(name).map(|text| PathBuf::from(expanded(&text, variable)));
        let is_on = |name: &str| set(name).is_some_and(|value| is_true(&value));
        let caches = folder("XDG_CACHE_HOME").or_else(|| Some(Path::new(&set("HOME")?).join(".cache")));
        let home = folder("HF_HOME").or_else(|| Some(caches?.join("huggingface")));
        let home = home.unwrap_or_else(|| PathBuf::from(".cache/huggingface"));
        let token = set("HF_TOKEN").or_else(|| set("HUGGING_FACE_HUB_TOKEN")).or_else(|| {
            let file = folder("HF_TOKEN_PATH").unwrap_or_else(|| home.join("token"));
            foreign::read_text(&file, foreign::WORD).ok()
        });
        let token = token.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
        token.iter().for_each(|token| remember(token));
        Ok(Self {
            endpoint: endpoint(set("HF_ENDPOINT").as_deref().unwrap_or(HUB))?,
            cache: folder("HF_HUB_CACHE").or_else(|| folder("HUGGINGFACE_HUB_CACHE")).unwrap_or_else(|| home.join("hub")),
            offline: is_on("HF_HUB_OFFLINE") || set("HF_HUB_OFFLINE").is_none() && is_on("TRANSFORMERS_OFFLINE"),
            reply_timeout: seconds("HF_HUB_ETAG_TIMEOUT", &set)?,
            read_timeout: seconds("HF_HUB_DOWNLOAD_TIMEOUT", &set)?,
            waits: if cfg!(test) { RetryWaits::SHORT } else { RetryWaits::PATIENT },
            has_bar: !is_on("HF_HUB_DISABLE_PROGRESS_BARS"),
            token,
            is_implicit: !is_on("HF_HUB_DISABLE_IMPLICIT_TOKEN"),
        })
    }

    /// Returns true if there is a token, even one that downloads do not send.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Returns the `Authorization` header of uploads; `None` without a token.
    ///
    /// # Errors
    /// If the token has characters that an HTTP header must not have.
    pub fn authorization(&self) -> Result<Option<HeaderValue>> {
        let Some(token) = &self.token else { return Ok(None) };
        // Neither this error nor that of `http` contains the token.
        let header = HeaderValue::from_str(&format!("Bearer {token}")).ok();
        let mut header = header.context("HF_TOKEN has characters that are not allowed in an HTTP header")?;
        header.set_sensitive(true);
        Ok(Some(header))
    }

    /// Returns the `Authorization` header of downloads; `None` without a token or with `HF_HUB_DISABLE_IMPLICIT_TOKEN`.
    ///
    /// # Errors
    /// If the token has characters that an HTTP header must not have.
    pub(crate) fn implicit_authorization(&self) -> Result<Option<HeaderValue>> {
        if self.is_implicit { self.authorization() } else { Ok(None) }
    }

    /// Returns the HTTP client. It does not follow redirects, because only the endpoint may get the token. It returns responses of any
    /// status, and asks for uncompressed bodies, so that byte counts allow downloads to resume.
    pub fn agent(&self) -> Agent {
        let config = Agent::config_builder()
            .timeout_connect(Some(self.reply_timeout))
            .timeout_recv_response(Some(self.reply_timeout))
            .timeout_per_read(Some(self.read_timeout))
            .timeout_per_write(Some(self.read_timeout))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .accept_encoding("identity")
            .user_agent(concat!("burnish/", env!("CARGO_PKG_VERSION")));
        let config = if is_local(&self.endpoint) { config.proxy(None) } else { config };
        config.build().into()
    }

    /// Returns the address of a path on the Hub. `path` starts with a slash and is already escaped.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.endpoint.to_string().trim_end_matches('/'))
    }

    /// Returns true if others can read the requests: the endpoint is on another machine, and its address is not `https`.
    pub(crate) fn is_unencrypted(&self) -> bool {
        self.endpoint.scheme_str() != Some("https") && !is_local(&self.endpoint)
    }

    /// Returns true if an address is on the endpoint; only such requests get the token.
    pub(crate) fn is_endpoint(&self, uri: &Uri) -> bool {
        let place = |uri: &Uri| {
            let scheme = uri.scheme_str()?.to_ascii_lowercase();
            let port = uri.port_u16().or(match scheme.as_str() {
                "http" => Some(80),
                "https" => Some(443),
                _ => None,
            });
            Some((scheme, uri.host()?.to_ascii_lowercase(), port))
        };
        place(uri).is_some_and(|one| place(&self.endpoint) == Some(one))
    }
}

/// Returns true for the values that mean yes, in upper or lower case.
fn is_true(value: &str) -> bool {
    ["1", "ON", "YES", "TRUE"].contains(&value.to_ascii_uppercase().as_str())
}

fn seconds(name: &str, set: &dyn Fn(&str) -> Option<String>) -> Result<Duration> {
    let Some(text) = set(name) else { return Ok(Duration::from_secs(TIMEOUT)) };
    let number = text.trim().parse().ok();
    let number: u64 = number.with_context(|| format!("{name}={text}: this must be a whole number of seconds"))?;
    Ok(Duration::from_secs(if number == 0 { TIMEOUT } else { number }))
}

fn endpoint(text: &str) -> Result<Uri> {
    let text = text.trim().trim_end_matches('/');
    let uri: Option<Uri> = text.parse().ok();
    let known = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty());
    let uri = uri.filter(known).with_context(|| {
        format!("HF_ENDPOINT={}: this must be an address that begins with https:// or http://, such as {HUB}", hide(text))
    })?;
    let plain = !text.contains(['?', '#', '@']);
    ensure!(plain, "HF_ENDPOINT={}: the address must not contain a user, ? or #; put a token into HF_TOKEN", hide(text));
    Ok(uri)
}

fn is_local(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

/// Expands `~`, `$NAME` and `${NAME}` in a path like Python's `expanduser` and `expandvars`; unset variables stay unchanged.
fn expanded(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> String {
    static VARIABLE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\$(?:\{([^{}]*)\}|([A-Za-z0-9_]+))").ok());
    let home = variable("HOME").filter(|_| text == "~" || text.starts_with("~/"));
    let text = home.map_or_else(|| text.to_owned(), |home| format!("{home}{}", &text[1..]));
    let value = |found: &Captures| {
        let name = found.get(1).or_else(|| found.get(2)).map_or("", |name| name.as_str());
        variable(name).unwrap_or_else(|| found[0].to_owned())
    };
    VARIABLE.as_ref().map_or_else(|| text.clone(), |pattern| pattern.replace_all(&text, value).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Environment> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
        Environment::read(&find)
    }

    /// The folders are those of `huggingface_hub.constants` 2.4.
    #[test]
    fn variables_mean_what_they_mean_to_huggingface_hub() {
        for (variables, cache) in [
            (&[("HOME", "/h")][..], "/h/.cache/huggingface/hub"),
            (&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")], "/x/huggingface/hub"),
            (&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x"), ("HF_HOME", "~/own")], "/h/own/hub"),
            (&[("HF_HOME", "$BASE/${NAME}/$UNSET"), ("BASE", "/b"), ("NAME", "n")], "/b/n/$UNSET/hub"),
            (&[("HF_HOME", "/o"), ("HUGGINGFACE_HUB_CACHE", "/old")], "/old"),
            (&[("HF_HOME", "/o"), ("HUGGINGFACE_HUB_CACHE", "/old"), ("HF_HUB_CACHE", "/new")], "/new"),
            (&[("HF_HOME", ""), ("HOME", "/h")], "/h/.cache/huggingface/hub"),
        ] {
            assert_eq!(read(variables).unwrap().cache, Path::new(cache), "{variables:?}");
        }
        let plain = read(&[("HOME", "/h")]).unwrap();
        assert_eq!((plain.url("/api"), plain.offline, plain.has_bar), (format!("{HUB}/api"), false, true));
        assert_eq!(plain.reply_timeout, Duration::from_secs(10));
        for (name, value, offline) in [
            ("HF_HUB_OFFLINE", "1", true),
            ("HF_HUB_OFFLINE", "yes", true),
            ("HF_HUB_OFFLINE", "0", false),
            ("TRANSFORMERS_OFFLINE", "ON", true),
        ] {
            assert_eq!(read(&[(name, value)]).unwrap().offline, offline, "{name}={value}");
        }
        let other = [("HF_ENDPOINT", "http://127.0.0.1:80/hf/"), ("HF_HUB_DOWNLOAD_TIMEOUT", "3"), ("HF_HUB_ETAG_TIMEOUT", "0")];
        let other = read(&other).unwrap();
        assert_eq!((other.url("/a"), other.read_timeout.as_secs()), ("http://127.0.0.1:80/hf/a".to_owned(), 3));
        assert_eq!(other.reply_timeout.as_secs(), 10);
        for (name, value) in [
            ("HF_ENDPOINT", "huggingface.co"),
            ("HF_ENDPOINT", "ftp://host"),
            ("HF_ENDPOINT", "https://me:endpoint-password@host"),
            ("HF_ENDPOINT", "http://"),
            ("HF_HUB_ETAG_TIMEOUT", "soon"),
            ("HF_HUB_DOWNLOAD_TIMEOUT", "-1"),
        ] {
            let error = read(&[(name, value)]).unwrap_err().to_string();
            assert!(error.starts_with(name) && !error.contains("endpoint-password"), "{error}");
        }
    }

    #[test]
    fn the_token_is_found_where_it_is_kept_and_goes_to_the_endpoint_alone() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().to_str().unwrap();
        std::fs::write(home.path().join("token"), "hf_of_the_file\n").unwrap();
        std::fs::write(home.path().join("other"), "hf_elsewhere").unwrap();
        let other = home.path().join("other");
        for (variables, token) in [
            (vec![("HF_HOME", folder)], "hf_of_the_file"),
            (vec![("HF_HOME", folder), ("HF_TOKEN_PATH", other.to_str().unwrap())], "hf_elsewhere"),
            (vec![("HF_HOME", folder), ("HUGGING_FACE_HUB_TOKEN", "hf_former")], "hf_former"),
            (vec![("HF_HOME", folder), ("HUGGING_FACE_HUB_TOKEN", "hf_former"), ("HF_TOKEN", " hf_today ")], "hf_today"),
        ] {
            let environment = read(&variables).unwrap();
            let header = environment.authorization().unwrap().unwrap();
            assert_eq!(header.to_str().unwrap(), format!("Bearer {token}"), "{variables:?}");
            assert!(environment.implicit_authorization().unwrap().is_some());
            assert_eq!(hide(token), "***");
        }
        let silent = read(&[("HF_TOKEN", "hf_silent"), ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")]).unwrap();
        assert!(silent.implicit_authorization().unwrap().is_none() && silent.authorization().unwrap().is_some());
        let broken = read(&[("HF_TOKEN", "hf_bro\nken")]).unwrap().authorization().unwrap_err().to_string();
        assert!(!broken.contains("hf_bro"), "{broken}");

        let known = read(&[("HF_ENDPOINT", "https://Hub.example/hf")]).unwrap();
        for (address, is_own) in [
            ("https://hub.example/a", true),
            ("https://hub.example:443/a", true),
            ("http://hub.example/a", false),
            ("https://hub.example:8443/a", false),
            ("https://cdn.hub.example/a", false),
            ("/a", false),
        ] {
            assert_eq!(known.is_endpoint(&address.parse().unwrap()), is_own, "{address}");
        }
    }
}
