//! Responses that a thread writes while the client reads them.

use std::io::{self, BufWriter, ErrorKind, Write};

use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::spawn_blocking;

use super::body::ResponseBody;
use super::http_error::HttpResponse;

/// The size of a piece in bytes.
const PIECE: usize = 64 << 10;
/// The number of pieces that wait for the client.
const PIECES: usize = 4;

/// Returns a JSON response that `write` writes on a thread of the runtime. The thread waits for the client; it ends with an error
/// of the writer when the client has left.
pub fn json_in_pieces(write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static) -> HttpResponse {
    let (pieces, receive) = channel(PIECES);
    spawn_blocking(move || {
        let mut out = BufWriter::with_capacity(PIECE, PieceWriter(pieces));
        if let Err(error) = write(&mut out).and_then(|()| out.flush()) {
            tracing::debug!("a response was not read to its end: {error}");
        }
    });
    let mut response = HttpResponse::new(ResponseBody::Pieces(receive));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Sends what is written as pieces.
struct PieceWriter(Sender<Bytes>);

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(PIECE)];
        self.0.blocking_send(Bytes::copy_from_slice(piece)).map_err(|_| ErrorKind::BrokenPipe)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
