//! Receives a request: checks its headers, and reads its body within the limits on size and time.

use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::http_error::HttpError;
use super::limits::ServerLimits;

/// Receives the bodies of all requests.
pub(crate) struct Bodies {
    limits: ServerLimits,
    /// One permit for each byte that may still be received.
    room: Arc<Semaphore>,
}

/// A body, and its share of the bytes in flight.
#[derive(Default)]
pub struct RequestBody {
    pub bytes: Bytes,
    share: BodyShare,
}

/// The share that a request has of the memory for bodies, until it is dropped. Work that keeps values of a body keeps its share.
#[derive(Default)]
pub struct BodyShare {
    _permit: Option<OwnedSemaphorePermit>,
}

impl RequestBody {
    /// Drops the bytes, and returns the share.
    #[must_use]
    pub fn into_share(self) -> BodyShare {
        self.share
    }

    #[cfg(test)]
    pub(crate) fn with_share(bytes: Bytes, permit: OwnedSemaphorePermit) -> Self {
        Self { bytes, share: BodyShare { _permit: Some(permit) } }
    }
}

impl From<Bytes> for RequestBody {
    /// Returns a body that did not come over the network.
    fn from(bytes: Bytes) -> Self {
        Self { bytes, share: BodyShare::default() }
    }
}

impl Bodies {
    pub(crate) fn new(limits: ServerLimits) -> Self {
        Self { limits, room: Arc::new(Semaphore::new(limits.in_flight.min(Semaphore::MAX_PERMITS))) }
    }

    /// Receives the body of a request.
    ///
    /// # Errors
    /// 400 without a clear length, 408, 413, and 503 if the bodies of other requests leave no room.
    pub(crate) async fn receive(&self, head: &Parts, body: Incoming) -> Result<RequestBody, HttpError> {
        let announced = length(head)?;
        if announced.is_some_and(|length| length > self.limits.body as u64) {
            return Err(self.too_large());
        }
        let time = self.limits.request_time;
        let late = |_| HttpError::new(StatusCode::REQUEST_TIMEOUT, format!("the body did not arrive within {time:?}"));
        timeout(time, self.collect(body)).await.map_err(late)?
    }

    async fn collect(&self, mut body: Incoming) -> Result<RequestBody, HttpError> {
        let (mut bytes, mut share) = (Vec::new(), None::<OwnedSemaphorePermit>);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| HttpError::malformed(format!("the body cannot be read: {error}")))?;
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > self.limits.body {
                return Err(self.too_large());
            }
            // Permits are taken as the bytes arrive, so a client that announces much and sends nothing takes no room from others.
            let more = u32::try_from(data.len()).ok().and_then(|count| self.room.clone().try_acquire_many_owned(count).ok());
            let more = more.ok_or_else(|| HttpError::busy("other requests fill the memory for request bodies"))?;
            match &mut share {
                Some(share) => share.merge(more),
                None => share = Some(more),
            }
            bytes.extend_from_slice(&data);
        }
        Ok(RequestBody { bytes: bytes.into(), share: BodyShare { _permit: share } })
    }

    fn too_large(&self) -> HttpError {
        HttpError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body is larger than {} {}", self.limits.body_bound, self.limits.body),
        )
    }
}

/// Returns the announced length of a body; `None` if it comes in chunks. hyper refuses malformed and contradicting lengths. If a
/// request has both headers, chunks count and the connection is closed afterwards.
fn length(head: &Parts) -> Result<Option<u64>, HttpError> {
    if head.headers.contains_key(TRANSFER_ENCODING) {
        return Ok(None);
    }
    match head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok()) {
        Some(length) => Ok(Some(length)),
        None if [Method::GET, Method::HEAD].contains(&head.method) => Ok(Some(0)),
        None => Err(HttpError::malformed("the header Content-Length is missing")),
    }
}
