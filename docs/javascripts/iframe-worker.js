// Browsers start no worker from a file. Where the site is read from the file system, the search runs
// in a hidden frame instead, which looks like a worker to the page.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.answer(data);
      inside.importScripts = (...scripts) =>
        scripts.reduce(
          (before, each) => before.then(() => this.load(each)),
          Promise.resolve(),
        );
      this.inside = inside;
      this.load(url).then(() => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.postMessage(data));
      });
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.inside.document.createElement("script");
        script.src = url;
        script.onload = resolve;
        script.onerror = reject;
        this.inside.document.body.appendChild(script);
      });
    }

    answer(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.inside.dispatchEvent(new MessageEvent("message", { data }));
    }

    terminate() {}
  };
  window.Worker = window.IFrameWorker;
}
