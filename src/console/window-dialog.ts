/** What happened to one window: its state, the files that came for it, the detections that came of them, what can be done. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { ExportName, FileEntry, WindowDetail } from '../admin/console/api.ts';
import { Actions } from './action.ts';
import { DetectionRows } from './detection-rows.ts';
import { Dialog } from './dialog.ts';
import { FileStory } from './file-report.ts';
import { count, windowName } from './format.ts';
import { LETTERS } from './letters.ts';
import { Read, State, When } from './parts.ts';
import { queryOf } from './route.ts';
import { useReading } from './server.ts';

export function WindowDialog({
  name,
  start,
  onClose,
}: {
  name: ExportName;
  start: string;
  onClose: () => void;
}): VNode {
  const path = `/console/window${queryOf({ export: name, window_start: start })}`;
  const reading = useReading<WindowDetail>(path, ['windows']);
  const ms = Date.parse(start);
  const title = Number.isNaN(ms) ? 'Window' : `${name}, ${windowName(ms)}`;
  return html`<${Dialog} title=${title} class="drawer" onClose=${onClose}>
    <${Read} of=${reading}>${(detail: WindowDetail) => html`<${Story} detail=${detail} />`}</${Read}>
  </${Dialog}>`;
}

function Story({ detail }: { detail: WindowDetail }): VNode {
  const { letter, held, since, due_at, files, streams, detections, actions } = detail;
  const brought = streams.map(
    ({ subscription_id, content_type, rows }) => `${subscription_id} ${content_type}: ${count(rows)}`,
  );
  const { text, mark } = LETTERS[letter];
  return html`<div class="facts">
      <p><${State} name=${held ? 'held' : mark}><strong>${text}</strong>${held && ', a file is held'}</${State}></p>
      <p class="soft">${since !== null && html`Since <${When} at=${since} /> UTC. `}Its file was due at <${When} at=${due_at} /> UTC.</p>
      <${Actions} of=${actions} />
    </div>
    <h3>Files</h3>
    ${files.length === 0 ? html`<p class="empty">No file has come for this window.</p>` : files.map((file: FileEntry) => html`<${FileStory} key=${file.number} file=${file} />`)}
    <h3>Detections</h3>
    ${brought.length > 0 && html`<p class="soft">New versions by subscription and type: ${brought.join(', ')}</p>`}
    <${DetectionRows} rows=${detections} label="Detections of this window" empty="None came of it." />`;
}
