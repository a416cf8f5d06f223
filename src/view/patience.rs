//! Connections that do not wait for ever: whoever sends or takes nothing for a while is left.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep, sleep};

/// How long a client is waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// So long nothing may come or go.
    idle: Duration,
    /// So long somebody may go on sending requests.
    longest: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { idle: Duration::from_secs(20), longest: Duration::from_secs(300) }
    }
}

/// A listener whose connections end when nothing happens on them.
pub(super) struct Impatient {
    listener: TcpListener,
    patience: Patience,
}

impl Impatient {
    pub(super) fn new(listener: TcpListener, patience: Patience) -> Self {
        Self { listener, patience }
    }
}

impl Listener for Impatient {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let Patience { idle, longest } = self.patience;
        let until = Instant::now() + longest;
        let connection = Connection { stream, patience: idle, idle: Box::pin(sleep(idle)), until };
        (connection, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

pub(super) struct Connection {
    stream: TcpStream,
    patience: Duration,
    idle: Pin<Box<Sleep>>,
    until: Instant,
}

impl Connection {
    /// What came of reading or writing, or an error if nothing has for too long.
    fn patient<T>(
        &mut self,
        done: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if done.is_ready() {
            let until = Instant::now() + self.patience;
            self.idle.as_mut().reset(until);
            return done;
        }
        match self.idle.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if Instant::now() > self.until {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.patient(read, context)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.patient(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Somebody who is connected to a listener of this patience, in seconds: both ends.
    async fn connected(idle: u64, longest: u64) -> (TcpStream, Connection) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let [idle, longest] = [idle, longest].map(Duration::from_secs);
        let mut listener = Impatient::new(listener, Patience { idle, longest });
        let (client, (ours, _)) = tokio::join!(TcpStream::connect(address), listener.accept());
        (client.unwrap(), ours)
    }

    #[test]
    fn the_viewer_waits_for_twenty_seconds_and_five_minutes() {
        let Patience { idle, longest } = Patience::default();
        assert_eq!([idle, longest].map(|time| time.as_secs()), [20, 300]);
    }

    #[tokio::test]
    async fn whoever_sends_nothing_is_left() {
        let (mut client, mut ours) = connected(0, 1000).await;
        client.write_all(b"G").await.unwrap();
        // What is there is read, whatever the time.
        ours.stream.readable().await.unwrap();
        assert_eq!(ours.read_u8().await.unwrap(), b'G');
        assert_eq!(ours.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn whoever_takes_nothing_is_left() {
        let (_client, mut ours) = connected(0, 1000).await;
        let endless = vec![0; 64 << 20];
        let error = ours.write_all(&endless).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn whoever_sends_for_ever_is_left() {
        let (mut client, mut ours) = connected(1000, 0).await;
        client.write_all(b"GET / HTTP/1.1").await.unwrap();
        ours.stream.readable().await.unwrap();
        assert_eq!(ours.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        // An answer that is under way still goes out.
        ours.write_all(b"HTTP/1.1").await.unwrap();
    }

    #[tokio::test]
    async fn whoever_is_at_work_is_waited_for() {
        let (mut client, mut ours) = connected(1000, 1000).await;
        client.write_all(b"GET").await.unwrap();
        let mut got = [0; 3];
        ours.read_exact(&mut got).await.unwrap();
        drop(client);
        assert_eq!((&got, ours.read(&mut got.clone()).await.unwrap()), (b"GET", 0));
    }
}
