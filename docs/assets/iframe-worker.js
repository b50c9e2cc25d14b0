/* The search of the site runs in a worker, and browsers refuse workers to pages that are opened from disk. There, a
   hidden frame takes the worker's place: it loads the same script and exchanges the same messages. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      addEventListener("message", (event) => {
        if (event.source === inside) this.dispatchEvent(new MessageEvent("message", { data: event.data }));
      });
      this.ready = new Promise((resolve) => (inside.loaded = resolve));
      inside.document.open();
      inside.document.write(`<body><script>
        postMessage = (data) => parent.postMessage(data, "*");
        importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((resolve) => {
          const script = document.createElement("script");
          script.src = url;
          script.onload = resolve;
          document.body.append(script);
        })), Promise.resolve());
      <\/script><script src="${url}" onload="loaded()"><\/script></body>`);
      inside.document.close();
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
