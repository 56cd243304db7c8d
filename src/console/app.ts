/** The console in the browser: session, navigation, views. */
import { html, render } from 'htm/preact';
import type { VNode } from 'preact';
import { useEffect, useErrorBoundary, useMemo } from 'preact/hooks';
import type { Operations, Overview as OverviewAnswer, Session, SessionBegun } from '../admin/console/api.ts';
import { grouped } from '../counted.ts';
import { ActionHost, FormsContext } from './action.ts';
import { Customers } from './customers.ts';
import { Detections } from './detections.ts';
import { Files } from './files.ts';
import { instant } from './format.ts';
import { History } from './history.ts';
import { type Children, mark } from './inline.ts';
import { Lab } from './lab.ts';
import { Manual } from './manual.ts';
import { missingIn, Overview } from './overview.ts';
import { Code, failed, Heading } from './parts.ts';
import { linkTo, type Route, useRoute } from './route.ts';
import { keepSecret, type Reading, refusalOf, SESSION, send, useChanges, useReading } from './server.ts';
import { Windows } from './windows.ts';

interface View {
  readonly title: string;
  readonly show: (props: { readonly route: Route; readonly overview: Reading<OverviewAnswer> }) => VNode;
  readonly badge?: (overview: OverviewAnswer) => number;
}

const VIEWS: Readonly<Record<string, View>> = {
  overview: { title: 'Overview', show: Overview, badge: ({ alerts }) => alerts.length },
  windows: { title: 'Windows', show: Windows, badge: ({ exports }) => missingIn(exports) },
  files: { title: 'Files', show: Files },
  customers: { title: 'Customers', show: Customers, badge: ({ keys }) => keys.behind },
  detections: { title: 'Detections', show: Detections },
  history: { title: 'History', show: History },
  lab: { title: 'Lab', show: Lab },
  manual: { title: 'Manual', show: Manual },
};

function App({ refused }: { refused: string | null }): VNode {
  const { pages, failure } = useReading<Session>(SESSION, ['session']);
  const [data] = pages;
  if (data !== undefined && failure?.status !== 401) return html`<${Console} session=${data} />`;
  const ended = data === undefined ? null : 'The session has ended.';
  const reason = failure?.status === 401 ? (refused ?? ended) : failure?.message;
  return html`<main class="signed-out"><h1>Wirewatch</h1>
    ${reason && failed(reason)}
    ${
      failure === undefined
        ? html`<p class="reading">Reading …</p>`
        : html`<p>To log in, have a link printed on the machine that runs Wirewatch. It works once, for ten minutes.</p>
    <${Code} text="wirewatch console" label="the command" />
    <p class="soft">With <code>--read-only</code>, the session can view everything but change nothing.${' '}
      With <code>--as NAME</code>, the audit trail shows that name beside the user’s.</p>`
    }</main>`;
}

function Console({ session }: { session: Session }): VNode {
  const route = useRoute();
  const connected = useChanges();
  const overview = useReading<OverviewAnswer>('/console/overview', ['overview']);
  const operations = useReading<Operations>('/console/operations', ['role']).pages[0]?.operations;
  const forms = useMemo(() => new Map(operations?.map((form) => [form.name, form])), [operations]);
  const view = Object.hasOwn(VIEWS, route.view) ? VIEWS[route.view] : undefined;
  const title = view?.title ?? 'Not found';
  useEffect(() => {
    document.title = `${title} – Wirewatch`;
    scrollTo(0, 0);
  }, [route.view, route.name]);
  const toMain = (event: Event) => {
    event.preventDefault();
    document.getElementById('main')?.focus();
  };
  // One detection and a topic have headings of their own.
  const isNamed = route.view === 'manual' || (route.view === 'detections' && route.name !== '');
  return html`<${FormsContext.Provider} value=${forms}>
    <a class="skip" href="#main" onClick=${toMain}>Skip to the content</a>
    <div class="frame">
      ${side(session, route, connected, overview.pages[0])}
      <main id="main" tabindex="-1" key=${route.view}>
        ${!isNamed && html`<${Heading}>${title}</${Heading}>`}
        <${Boundary}>
          ${
            view === undefined
              ? html`<p>There is no such page. <a href=${linkTo('overview')}>Overview</a></p>`
              : html`<${view.show} route=${route} overview=${overview} />`
          }
        </${Boundary}>
      </main>
    </div>
    <${ActionHost} />
  </${FormsContext.Provider}>`;
}

/** If a view fails, the rest stays usable. */
function Boundary({ children }: { children?: Children }): Children {
  const [error] = useErrorBoundary();
  if (error === undefined) return children;
  return failed(
    'This view failed. Reload the page; if it fails again, restart Wirewatch with the newest version, or use the commands.',
  );
}

function side(session: Session, route: Route, connected: boolean | null, overview?: OverviewAnswer): VNode {
  const { name, read_only, expires_at, version, demo, lab } = session;
  const views = Object.entries(VIEWS).filter(([view]) => view !== 'lab' || lab);
  const links = views.map(([view, { title, badge }]) => {
    const open = overview === undefined ? 0 : (badge?.(overview) ?? 0);
    const isUrgent = view === 'overview' && overview?.alerts.some(({ page_worthy }) => page_worthy);
    const shown = html`<span class=${`badge ${isUrgent && 'urgent'}`}>${grouped(open)}<span class="hidden"> open</span></span>`;
    return html`<li><a href=${linkTo(view)} aria-current=${view === route.view ? 'page' : undefined}>${title}${open > 0 && shown}</a></li>`;
  });
  const lost = 'Not connected: this page may be out of date. Trying again.';
  const known = connected ? (['done', 'Live'] as const) : (['warning', lost] as const);
  const [shape, told] = connected === null ? (['abandoned', 'Connecting'] as const) : known;
  return html`<header class="side">
    <a class="brand" href=${linkTo('overview')}>Wirewatch${lab && html`<span class="tag">${demo ? 'demo' : 'lab'}</span>`}</a>
    <nav aria-label="Views"><ul>${links}</ul></nav>
    <div class="foot soft">
      <p class="connection" role="status">${mark(shape)} ${told}</p>
      <p>${name}${read_only && ', read-only'}</p>
      <p title=${`Until ${instant(Date.parse(expires_at))} UTC`}>Version ${version}</p>
      <button type="button" class="plain" onClick=${logOut}>Log out</button>
    </div>
  </header>`;
}

/** Without an answer, the secret is forgotten all the same: nobody else has it. */
async function logOut(): Promise<void> {
  await send(`${SESSION}/end`, {}).catch(refusalOf);
  keepSecret('');
  location.reload();
}

const LINK = /^#login=(.+)$/;

/** Redeems the link that opened the page, and removes its token from the address. @returns the error; null if none */
async function redeemLink(): Promise<string | null> {
  const [, token] = LINK.exec(location.hash) ?? [];
  if (token === undefined) return null;
  history.replaceState(null, '', '/');
  const begun = await send<SessionBegun>(SESSION, { token }).catch(refusalOf);
  if (typeof begun === 'string') return begun;
  keepSecret(begun.secret);
  return null;
}

// A link that is opened in a tab with the console changes only the fragment, so the page is not loaded.
addEventListener('hashchange', () => {
  if (LINK.test(location.hash)) location.reload();
});
const refused = await redeemLink();
const place = document.getElementById('app');
if (place !== null) render(html`<${App} refused=${refused} />`, place);
