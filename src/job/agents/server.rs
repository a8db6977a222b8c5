//! The server where programs that lead conversations ask the model for turns: on this machine, by OpenAI's protocol. Each program
//! has a key that identifies its conversation.

use std::collections::HashMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use hyper::StatusCode;
use hyper::header::AUTHORIZATION;
use hyper::http::request::Parts;

use crate::job::openai::{self, ApiPath, not_there};
use burnish_agent::endpoint::{Api, ApiError, EndpointModel, HttpReply};
use burnish_agent::program::{Inbox, ProgramHandle};
use burnish_agent::session::{ApiAccess, PythonProgram, random_token};
use burnish_server::{BoundServer, Handler, HttpError, HttpResponse, RequestBody, ServerLimits};
use burnish_util::interrupt::Interrupt;

/// Maximum number of connections: a program may have several.
const CONNECTIONS: usize = 1 << 14;
/// Maximum bytes of all waiting request bodies: all conversations of a step may wait at once.
const IN_FLIGHT: usize = 1 << 30;

/// The server of a run. It stops when dropped.
pub(crate) struct AgentServer {
    base_url: String,
    programs: Arc<Programs>,
    interrupt: Interrupt,
}

/// The running programs, by their keys.
struct Programs {
    model: Arc<EndpointModel>,
    desks: Mutex<HashMap<String, ProgramHandle>>,
}

impl AgentServer {
    /// Listens at a free port of 127.0.0.1.
    ///
    /// # Errors
    /// If the system has no free port or thread.
    pub(super) fn start(model: Arc<EndpointModel>) -> Result<Self> {
        let limits = ServerLimits {
            connections: CONNECTIONS,
            request_time: ServerLimits::REQUEST_TIME,
            body: ServerLimits::BODY,
            body_bound: "what a program may send: bytes",
            in_flight: IN_FLIGHT,
        };
        let server = BoundServer::loopback(0, limits).context("the programs of conversations need a port of 127.0.0.1")?;
        let base_url = format!("http://{}/v1", server.address()?);
        let programs = Arc::new(Programs { model, desks: Mutex::default() });
        let (handler, interrupt) = (programs.clone(), Interrupt::default());
        let stop = interrupt.clone();
        let run = move || {
            if let Err(error) = server.run(handler, 1, &stop, pending()) {
                tracing::error!("the server for the programs of conversations stopped: {error:#}");
            }
        };
        thread::Builder::new().name("agent server".to_owned()).spawn(run)?;
        Ok(Self { base_url, programs, interrupt })
    }

    /// Returns the served model.
    pub(super) fn model(&self) -> Arc<EndpointModel> {
        self.programs.model.clone()
    }

    /// Returns the part that begins programs, for conversations that live no longer than the server.
    pub(crate) fn program_starter(&self) -> ProgramStarter {
        ProgramStarter { base_url: self.base_url.clone(), programs: self.programs.clone() }
    }
}

impl Drop for AgentServer {
    fn drop(&mut self) {
        self.interrupt.ask();
    }
}

/// The part of the server that begins programs.
#[derive(Clone)]
pub(crate) struct ProgramStarter {
    base_url: String,
    programs: Arc<Programs>,
}

impl ProgramStarter {
    /// Begins a program, and returns the inbox of its requests.
    ///
    /// # Errors
    /// If the system lacks a thread or a random value.
    pub(super) fn begin(&self, program: PythonProgram) -> Result<Inbox> {
        let (api_key, (mut inbox, handle)) = (random_token()?, Inbox::open());
        self.programs.desks().insert(api_key.clone(), handle.clone());
        let (programs, key) = (self.programs.clone(), api_key.clone());
        inbox.at_end(move || drop(programs.desks().remove(&key)));
        let access = ApiAccess { base_url: self.base_url.clone(), api_key, model: self.programs.model.name.clone() };
        program.begin(access, &inbox, handle)?;
        Ok(inbox)
    }
}

impl Programs {
    fn desks(&self) -> MutexGuard<'_, HashMap<String, ProgramHandle>> {
        self.desks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the handle of the conversation whose key a request has.
    fn handle(&self, head: &Parts) -> Result<ProgramHandle, HttpError> {
        let header = head.headers.get(AUTHORIZATION).and_then(|header| header.to_str().ok());
        let key = header.and_then(|header| header.strip_prefix("Bearer ")).unwrap_or_default();
        let handle = self.desks().get(key).cloned();
        handle.ok_or_else(|| {
            let message = "the key belongs to no running conversation: create the client within the function that leads the \
                           conversation, with its api_key";
            HttpError::new(StatusCode::UNAUTHORIZED, message)
        })
    }

    async fn complete(&self, api: Api, handle: &ProgramHandle, body: RequestBody) -> HttpReply {
        let over = || HttpReply::Error(ApiError::status(400, "the conversation is over"));
        match handle.ask(api, body.bytes.to_vec()) {
            Some(reply) => reply.await.unwrap_or_else(|_| over()),
            None => over(),
        }
    }
}

impl Handler for Programs {
    fn admit(&self, head: &Parts) -> Result<(), HttpError> {
        let address = ApiPath::parse(head.uri.path()).ok_or_else(|| not_there(head, ""))?;
        address.methods().check(head)?;
        self.handle(head).map(drop)
    }

    async fn answer(self: Arc<Self>, head: Parts, body: RequestBody) -> Result<HttpResponse, HttpError> {
        let handle = self.handle(&head)?;
        let sent = match ApiPath::parse(head.uri.path()) {
            Some(ApiPath::Complete(api)) => self.complete(api, &handle, body).await,
            Some(ApiPath::Model(name)) => openai::models(&self.model, Some(&name)).unwrap_or_else(HttpReply::Error),
            _ => HttpReply::Json(self.model.list()),
        };
        Ok(openai::response(sent))
    }

    fn on_error(&self, _: &str, refusal: &HttpError) {
        tracing::debug!("a request of a program was refused: {}", refusal.message);
    }

    fn error_response(&self, refusal: HttpError) -> HttpResponse {
        openai::refusal(refusal)
    }
}
