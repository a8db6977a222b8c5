//! Bodies of responses: in memory, or streamed in pieces.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body_util::Full;
use hyper::body::{Bytes, Frame, SizeHint};
use tokio::sync::mpsc::Receiver;

/// The body of a response.
pub enum ResponseBody {
    Whole(Full<Bytes>),
    /// Pieces, until their sender is dropped. The channel closes when the client has left.
    Pieces(Receiver<Bytes>),
}

impl From<Bytes> for ResponseBody {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(Full::new(bytes))
    }
}

impl hyper::body::Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(full) => Pin::new(full).poll_frame(context),
            Self::Pieces(pieces) => Poll::Ready(ready!(pieces.poll_recv(context)).map(|piece| Ok(Frame::data(piece)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(full) => full.is_end_stream(),
            Self::Pieces(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(full) => full.size_hint(),
            Self::Pieces(_) => SizeHint::default(),
        }
    }
}
