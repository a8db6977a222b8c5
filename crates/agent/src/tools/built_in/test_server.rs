//! A scripted HTTP server for tests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// Starts a server that sends each reply once, and repeats the last one. Returns its address and the bodies of the requests.
pub(super) fn serve(answers: Vec<(u16, String)>) -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let recorded = requests.clone();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let body = read(&stream);
            let mut requests = recorded.lock().unwrap();
            let (status, answer) = &answers[requests.len().min(answers.len() - 1)];
            requests.push(serde_json::from_slice(&body).unwrap());
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", answer.len());
            _ = (&stream).write_all((head + answer).as_bytes());
        }
    });
    (url, requests)
}

/// Starts a server that replies to each request with single bytes, 20 ms apart. Returns its address.
pub(super) fn drip() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n");
                while stream.write_all(b" ").is_ok() {
                    thread::sleep(Duration::from_millis(20));
                }
            });
        }
    });
    url
}

fn read(stream: &TcpStream) -> Vec<u8> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    body
}
