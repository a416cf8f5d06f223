//! A server that answers each connection from a script, with whatever bytes and faults are asked for.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// What happens to one request.
#[derive(Clone)]
pub(crate) enum Step {
    /// A whole response.
    Answer { status: u16, headers: Vec<(&'static str, String)>, body: String },
    /// A response that promises more than comes; then the connection ends.
    Truncated(String),
    /// The connection is reset before the request is read.
    Reset,
    /// The beginning of a response, and then nothing for this long.
    Stall(Duration),
    /// Nothing comes for this long.
    Hang(Duration),
    /// Whatever this makes of the request.
    Reply(fn(&Value) -> Value),
    /// The same, with a status of its own.
    Answering(fn(&Arrived) -> (u16, Value)),
}

/// A response with a JSON body.
pub(crate) fn answer(status: u16, body: &Value) -> Step {
    text(status, &body.to_string())
}

/// A response with any body.
pub(crate) fn text(status: u16, body: &str) -> Step {
    Step::Answer { status, headers: Vec::new(), body: body.to_owned() }
}

impl Step {
    /// The same with one more header.
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        if let Self::Answer { headers, .. } = &mut self {
            headers.push((name, value.to_owned()));
        }
        self
    }
}

/// A completion with this message.
pub(crate) fn says(message: &Value) -> Step {
    answer(200, &completion(message, "stop"))
}

/// The body of a completion.
pub(crate) fn completion(message: &Value, finish_reason: &str) -> Value {
    json!({
        "id": "x", "object": "chat.completion", "model": "served-model",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12,
                  "prompt_tokens_details": {"cached_tokens": 8}},
    })
}

/// What arrived.
#[derive(Clone, Debug)]
pub(crate) struct Arrived {
    pub head: String,
    pub body: Vec<u8>,
}

impl Arrived {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// A running server; its thread ends with the test.
pub(crate) struct Server {
    pub base_url: String,
    arrived: Arc<Mutex<Vec<Arrived>>>,
}

impl Server {
    /// Answers the first connection with the first step, and so on; the last step repeats.
    pub(crate) fn start(script: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let arrived = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&arrived);
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let step = script[number.min(script.len() - 1)].clone();
                let seen = Arc::clone(&seen);
                // The client may be gone in the middle of it.
                thread::spawn(move || drop(serve(stream.unwrap(), step, &seen)));
            }
        });
        Self { base_url, arrived }
    }

    /// All whole requests so far.
    pub(crate) fn arrived(&self) -> Vec<Arrived> {
        self.arrived.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, step: Step, seen: &Mutex<Vec<Arrived>>) -> std::io::Result<()> {
    let mut reader = BufReader::with_capacity(64, stream.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
        if matches!(step, Step::Reset) {
            // Closing with unread bytes makes the system send a reset.
            return Ok(());
        }
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let arrived = Arrived { head, body };
    seen.lock().unwrap().push(arrived.clone());
    let step = match step {
        Step::Reply(reply) => answer(200, &reply(&arrived.json())),
        Step::Answering(reply) => {
            let (status, body) = reply(&arrived);
            answer(status, &body)
        }
        step => step,
    };

    let mut stream = stream;
    match step {
        Step::Answer { status, headers, body } => {
            write!(stream, "HTTP/1.1 {status} Whatever\r\nConnection: close\r\n")?;
            for (name, value) in headers {
                write!(stream, "{name}: {value}\r\n")?;
            }
            write!(stream, "Content-Length: {}\r\n\r\n{body}", body.len())?;
        }
        Step::Truncated(body) => {
            let promised = body.len() + 1000;
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {promised}\r\n\r\n{body}")?;
        }
        Step::Stall(time) => {
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{{\"choices\": [")?;
            thread::sleep(time);
        }
        Step::Reset | Step::Reply(_) | Step::Answering(_) => {}
        Step::Hang(time) => thread::sleep(time),
    }
    Ok(())
}
