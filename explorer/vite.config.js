import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

// Bundled libraries keep their licence notices.
function notices() {
  return {
    name: "notices",
    generateBundle(_, bundle) {
      const folders = new Set();
      for (const chunk of Object.values(bundle)) {
        for (const id of Object.keys(chunk.modules ?? {})) {
          const found = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id);
          if (found) folders.add(found[1]);
        }
      }
      const parts = [...folders].sort().map((folder) => {
        const { name, version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
        return `${name} ${version}\n\n${readFileSync(`${folder}/LICENSE`, "utf8").trim()}\n`;
      });
      const source = `explorer.js holds these libraries.\n\n${parts.join("\n----\n\n")}`;
      this.emitFile({ type: "asset", fileName: "NOTICE.txt", source });
    },
  };
}

export default defineConfig({
  plugins: [notices()],
  build: {
    target: "es2022",
    outDir: "../saccade/interpretation/explorer/assets",
    emptyOutDir: true,
    modulePreload: false,
    cssCodeSplit: false,
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    rollupOptions: {
      input: "src/main.tsx",
      output: { format: "iife", entryFileNames: "explorer.js", assetFileNames: "explorer[extname]" },
    },
  },
});
