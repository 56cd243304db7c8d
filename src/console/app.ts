/** The console: what the administration port shows to a person in a browser. */
import { html, render } from 'htm/preact';

const place = document.getElementById('app');
if (place !== null) render(html`<main><h1>Wirewatch</h1></main>`, place);
