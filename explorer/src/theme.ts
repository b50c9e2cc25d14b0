import { useEffect, useState } from "preact/hooks";
import type { Theme } from "./state";
import type { Ink } from "./views/view";

const query = "(prefers-color-scheme: dark)";

/** Whether the page is dark: as the reader chose, otherwise as their system is set. */
export function useDark(theme: Theme): boolean {
  const [system, setSystem] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const listen = (): void => setSystem(media.matches);
    media.addEventListener("change", listen);
    return () => media.removeEventListener("change", listen);
  }, []);
  return theme === "auto" ? system : theme === "dark";
}

export function inkOf(dark: boolean): Ink {
  return dark
    ? { dark, ground: "#10141b", text: "#e6eaf1", faint: "#8a94a5", line: "#2a3240", accent: "#ffa24b" }
    : { dark, ground: "#ffffff", text: "#1a2130", faint: "#6b7588", line: "#dfe3ea", accent: "#e8590c" };
}
