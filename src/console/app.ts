/** The console: what the administration port shows to a person in a browser. */
import { html, render } from 'htm/preact';
import type { VNode } from 'preact';
import { useEffect } from 'preact/hooks';
import { EVENTS, type Overview as OverviewAnswer, type Session } from '../admin/console/api.ts';
import { ActionHost } from './action.ts';
import { Boundary } from './boundary.ts';
import { Customers } from './customers.ts';
import { Detections } from './detections.ts';
import { Files } from './files.ts';
import { count, instant } from './format.ts';
import { History } from './history.ts';
import { EXPORTS } from './letters.ts';
import { Manual } from './manual.ts';
import { Overview } from './overview.ts';
import { notRead } from './overview-panels.ts';
import { Mark } from './parts.ts';
import { linkTo, type Route, useRoute } from './route.ts';
import { type Reading, SESSION, send, useReading, useStream } from './server.ts';
import { isLink, redeemLink, SessionContext, SignedOut } from './session.ts';
import { Windows } from './windows.ts';

interface View {
  readonly name: string;
  readonly title: string;
  readonly show: (route: Route, overview: Reading<OverviewAnswer>) => VNode;
  /** How many things of it want somebody. */
  readonly badge?: (overview: OverviewAnswer) => number;
}

const VIEWS: readonly View[] = [
  {
    name: 'overview',
    title: 'Overview',
    show: (_, overview) => html`<${Overview} reading=${overview} />`,
    badge: ({ alerts }) => alerts.length,
  },
  {
    name: 'windows',
    title: 'Windows',
    show: (route) => html`<${Windows} route=${route} />`,
    badge: ({ exports }) => EXPORTS.reduce((sum, name) => sum + notRead(exports[name]), 0),
  },
  { name: 'files', title: 'Files', show: (route) => html`<${Files} route=${route} />` },
  {
    name: 'customers',
    title: 'Customers',
    show: () => html`<${Customers} />`,
    badge: ({ keys }) => keys.behind,
  },
  { name: 'detections', title: 'Detections', show: (route) => html`<${Detections} route=${route} />` },
  { name: 'history', title: 'History', show: (route) => html`<${History} route=${route} />` },
  { name: 'manual', title: 'Manual', show: (route) => html`<${Manual} route=${route} />` },
];

function App({ refused }: { refused: string | null }): VNode {
  const session = useReading<Session>(SESSION, ['session', 'end']);
  const { data, failure } = session;
  const isIn = data !== undefined && failure?.status !== 401;
  if (isIn)
    return html`<${SessionContext.Provider} value=${data}><${Console} session=${data} /></${SessionContext.Provider}>`;
  if (failure === undefined)
    return html`<main class="signed-out"><h1>Wirewatch</h1><p class="soft">Reading …</p></main>`;
  const ended = data === undefined ? null : 'The session has ended.';
  return html`<${SignedOut} reason=${failure.status === 401 ? (refused ?? ended) : failure.message} />`;
}

function Console({ session }: { session: Session }): VNode {
  const route = useRoute();
  const connected = useStream('/console/events', EVENTS);
  const overview = useReading<OverviewAnswer>('/console/overview', ['overview']);
  const view = VIEWS.find(({ name }) => name === route.view);
  useEffect(() => {
    document.title = `${view?.title ?? 'Not found'} – Wirewatch`;
    scrollTo(0, 0);
  }, [route.view, route.name]);
  return html`<${ActionHost}>
    <a class="skip" href="#main" onClick=${toMain}>Skip to the content</a>
    <div class="frame">
      <${Side} session=${session} current=${view?.name} overview=${overview.data} connected=${connected} />
      <main id="main" tabindex="-1" key=${route.view}>${view === undefined ? html`<h1>Not found</h1><p>There is no such page. <a href=${linkTo('overview')}>Overview</a></p>` : html`<${Boundary}>${view.show(route, overview)}</${Boundary}>`}</main>
    </div>
  </${ActionHost}>`;
}

function toMain(event: Event): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

interface SideProps {
  readonly session: Session;
  readonly current: string | undefined;
  readonly overview: OverviewAnswer | undefined;
  readonly connected: boolean | null;
}

function Side({ session, current, overview, connected }: SideProps): VNode {
  const { name, read_only, expires_at, version, demo } = session;
  return html`<header class="side">
    <a class="brand" href=${linkTo('overview')}>Wirewatch${demo && html`<span class="tag">demo</span>`}</a>
    <nav aria-label="Views"><ul>${VIEWS.map(({ name: view, title, badge }) => {
      const open = overview === undefined ? 0 : (badge?.(overview) ?? 0);
      return html`<li key=${view}><a href=${linkTo(view)} aria-current=${view === current ? 'page' : undefined}>${title}${open > 0 && html`<span class=${isUrgent(view, overview) ? 'badge urgent' : 'badge'}>${count(open)}<span class="hidden"> open</span></span>`}</a></li>`;
    })}</ul></nav>
    <div class="foot soft">
      <p class="connection" role="status">${connected === false ? html`<${Mark} name="warning" /> Not connected: what is shown may be old. Trying again.` : html`<${Mark} name=${connected === null ? 'abandoned' : 'done'} /> ${connected === null ? 'Connecting' : 'Live'}`}</p>
      <p>${name}${read_only && ', read-only'}</p>
      <p title=${`Until ${instant(Date.parse(expires_at))} UTC`}>Version ${version}</p>
      <button type="button" class="plain" onClick=${logOut}>Log out</button>
    </div>
  </header>`;
}

/** Whether somebody is needed now. */
function isUrgent(view: string, overview: OverviewAnswer | undefined): boolean {
  return view === 'overview' && overview?.alerts.some(({ page_worthy }) => page_worthy) === true;
}

async function logOut(): Promise<void> {
  await send(`${SESSION}/end`, {}).catch(() => {});
  location.reload();
}

// A link that is opened where the console is shown already changes nothing but the fragment.
addEventListener('hashchange', () => {
  if (isLink()) location.reload();
});
const refused = await redeemLink();
const place = document.getElementById('app');
if (place !== null) render(html`<${App} refused=${refused} />`, place);
