/** What lies over the page: a question, or what is known of a window. The browser keeps the focus within and gives it back. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import type { Children } from './parts.ts';

interface DialogProps {
  readonly title: Children;
  readonly class?: string;
  readonly onClose: () => void;
  /** Told twice before it closes: what it shows is not shown again. */
  readonly isKept?: boolean;
  readonly children?: Children;
}

export function Dialog({ title, class: own = '', onClose, isKept = false, children }: DialogProps): VNode {
  const place = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    place.current?.showModal();
    // What had the focus may have been drawn anew meanwhile.
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const onCancel = (event: Event) => {
    event.preventDefault();
    if (!isKept) onClose();
  };
  const onClick = (event: Event) => {
    if (event.target === place.current && !isKept) onClose();
  };
  return html`<dialog ref=${place} class=${own} aria-labelledby=${id} onCancel=${onCancel} onClick=${onClick}>
    <div class="sheet">
      <header><h2 id=${id} tabindex="-1" autofocus>${title}</h2><button type="button" class="close" aria-label="Close" onClick=${onClose}>✕</button></header>
      ${children}
    </div>
  </dialog>`;
}
