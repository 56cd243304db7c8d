/** A view that fails must not take the others with it: it is said, and the rest stays in use. */
import { html } from 'htm/preact';
import { Component } from 'preact';
import { type Children, Mark } from './parts.ts';

interface Props {
  readonly children?: Children;
}

export class Boundary extends Component<Props, { readonly failed: boolean }> {
  override state = { failed: false };

  static override getDerivedStateFromError() {
    return { failed: true };
  }

  override render(): Children {
    if (!this.state.failed) return this.props.children;
    return html`<p class="failure" role="alert"><${Mark} name="failed" /> This view failed. Reload the page; if it fails again, restart Wirewatch with the newest version, or use the commands.</p>`;
  }
}
