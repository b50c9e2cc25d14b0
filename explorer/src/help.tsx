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
        <h2 id="help-title">What you see, and the keys</h2>
        <button aria-label="Close">×</button>
      </form>
      <p>
        A row is what looks (a query), a column is what is looked at (a key). Attention is not alignment, and not always
        an explanation: it says what was read, not what it did to the answer.
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
        Words and sentences: the weights of the pieces that are looked at are added up, those of the pieces that look are
        averaged. Hidden special tokens take their weight with them; the rest is not scaled up to 1. Each row is stored
        as its largest weight and, for every weight, one of {levels + 1} levels, which are finer for small weights.
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
