//! A headless Chromium, driven through its protocol: JSON that ends with a zero byte, over two
//! pipes.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

/// Longer than any answer takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The browser of all tests. It ends by itself when this process does, since its pipe is closed
/// then.
static BROWSER: LazyLock<Result<Mutex<Browser>, String>> = LazyLock::new(|| Browser::start().map(Mutex::new));

/// A browser with one page.
pub struct Browser {
    commands: PipeWriter,
    messages: Receiver<Value>,
    session: Option<String>,
    last: u64,
    /// Events that nobody has looked at yet.
    events: Vec<Value>,
    _process: Child,
}

/// The browser with a blank page, for one test; a skip is reported where there is none.
pub fn browser() -> Option<MutexGuard<'static, Browser>> {
    match &*BROWSER {
        Ok(browser) => {
            let mut browser = browser.lock().unwrap_or_else(PoisonError::into_inner);
            browser.renew();
            Some(browser)
        }
        Err(reason) => {
            println!("skipped: chromium: {reason}");
            None
        }
    }
}

impl Browser {
    fn start() -> Result<Self, String> {
        let program = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
            std::env::var_os("PATH")
                .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).exists()))
        });
        let program = program.ok_or("there is no chromium on the PATH")?;
        let folder = crate::folder("chromium");
        let _ = std::fs::remove_dir_all(&folder);
        let (of_browser, commands) = std::io::pipe().expect("a pipe");
        let (answers, to_us) = std::io::pipe().expect("a pipe");
        // It reads commands from descriptor 3 and writes to 4.
        let process = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null", program])
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"])
            .args(["--disable-dev-shm-usage", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", folder.display()))
            .stdin(of_browser)
            .stdout(to_us)
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{program} does not start: {error}"))?;
        let messages = read(answers);
        Ok(Self { commands, messages, session: None, last: 0, events: Vec::new(), _process: process })
    }

    /// Close the page, and open a blank one as wide as most screens.
    fn renew(&mut self) {
        self.session = None;
        let targets = self.call("Target.getTargets", json!({}));
        for target in targets["targetInfos"].as_array().into_iter().flatten() {
            if target["type"] == "page" {
                self.call("Target.closeTarget", json!({ "targetId": target["targetId"] }));
            }
        }
        let target = self.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached =
            self.call("Target.attachToTarget", json!({ "targetId": target["targetId"], "flatten": true }));
        self.session = attached["sessionId"].as_str().map(str::to_string);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
        self.resize(1280, "light");
        self.events.clear();
    }

    /// Call a method of the protocol.
    #[track_caller]
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        let answer = self.asked(method, parameters);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The same, with the whole answer, which may be an error.
    #[track_caller]
    pub fn asked(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.commands.write_all(format!("{message}\0").as_bytes()).expect("chromium lives");
        loop {
            let answer = self.message();
            if answer["id"] == self.last {
                return answer;
            }
            self.events.push(answer);
        }
    }

    #[track_caller]
    fn message(&mut self) -> Value {
        self.messages.recv_timeout(PATIENCE).expect("chromium answers")
    }

    /// Open a file, until everything in it was loaded and run.
    #[track_caller]
    pub fn open(&mut self, path: &Path) {
        self.events.retain(|event| event["method"] != "Page.loadEventFired");
        self.call("Page.navigate", json!({ "url": format!("file://{}", path.display()) }));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let message = self.message();
            self.events.push(message);
        }
    }

    /// The width of the window, and `light` or `dark`.
    pub fn resize(&mut self, width: u32, scheme: &str) {
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// The value of an expression, or of the promise that it is.
    #[track_caller]
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let result = self.call("Runtime.evaluate", parameters);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Bring every plot into view, so that each is drawn.
    #[track_caller]
    pub fn draw_all(&mut self) {
        self.evaluate(
            "(async () => { for (const figure of document.querySelectorAll('figure')) {
               figure.scrollIntoView();
               while (!figure.querySelector('.interactive')) await new Promise(requestAnimationFrame);
             } })()",
        );
    }

    /// Move the pointer to the middle of the element that an expression is.
    #[track_caller]
    pub fn point_at(&mut self, element: &str) {
        let place = self.evaluate(&format!(
            "(() => {{ const element = {element}; element.scrollIntoView({{ block: 'center' }});
               const box = element.getBoundingClientRect();
               return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        ));
        self.call("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": place[0], "y": place[1] }));
    }

    /// Press a key.
    pub fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", json!({ "type": kind, "key": key, "code": key }));
        }
    }

    /// Events of this kind since the page was renewed.
    pub fn events(&self, method: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["method"] == method).collect()
    }

    /// No script failed, none was refused, and nothing was asked for but the page itself.
    #[track_caller]
    pub fn expect_quiet(&self) {
        for kind in ["Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening"] {
            assert_eq!(self.events(kind), Vec::<&Value>::new(), "{kind}");
        }
        let asked = self.events("Network.requestWillBeSent");
        assert!(asked.iter().all(|one| one["params"]["type"] == "Document"), "{asked:?}");
    }
}

/// Messages as they come, from a thread of their own: a pipe cannot be waited for with a bound.
fn read(answers: PipeReader) -> Receiver<Value> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut answers = BufReader::new(answers);
        let mut bytes = Vec::new();
        while answers.read_until(0, &mut bytes).is_ok_and(|count| count > 0) {
            let message = serde_json::from_slice(bytes.strip_suffix(&[0]).unwrap_or(&bytes));
            bytes.clear();
            if !message.is_ok_and(|message| sender.send(message).is_ok()) {
                return;
            }
        }
    });
    receiver
}
