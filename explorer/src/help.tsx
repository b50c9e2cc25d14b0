import { useEffect, useRef } from "preact/hooks";
import { KEYS } from "./keyboard";
import type { View } from "./views/view";

interface Props {
  open: boolean;
  close: () => void;
  views: readonly View[];
  levels: number;
}

export function Help({ open, close, views, levels }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="help-title">
      <form method="dialog">
        <h2 id="help-title">Help and keys</h2>
        <button aria-label="Close">×</button>
      </form>
      <p>
        Rows attend (queries, the output), columns are attended to (keys, the input). Attention is not alignment, and
        not always an explanation: it shows what was read, not how that changed the answer.
      </p>
      <dl>
        {views.map((view, number) => (
          <>
            <dt>
              <kbd>{number + 1}</kbd> {view.title}
            </dt>
            <dd>{view.hint}</dd>
          </>
        ))}
      </dl>
      <p>
        Colours: by default the scale runs from 0 to 1 and follows the square root of the weight, so pages can be
        compared. The scales “Map” and “Row” stretch the colours to the largest weight, which makes even an untrained
        model look sharp.
      </p>
      <p>
        Words and sentences: columns are added up, rows are averaged. White space counts with the word after it. Hidden
        special tokens take their weight with them; the rest is not rescaled to 1. Each row is stored as its largest
        weight and one of {levels + 1} levels per weight, finer for small weights.
      </p>
      <table>
        <tbody>
          {KEYS.map(([key, meaning]) => (
            <tr>
              <th scope="row">
                {key.split(" ").map((each) => (
                  <kbd>{each}</kbd>
                ))}
              </th>
              <td>{meaning}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </dialog>
  );
}
