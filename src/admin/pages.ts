/** The pages of the administration port, by path: console, OpenAPI, metrics. */
import { openApiDocument } from '../openapi/document.ts';
import { adminDocument } from '../operations/openapi.ts';
import { consoleFiles } from '../packed.ts';
import type { Metrics } from './metrics.ts';

export interface Content {
  readonly contentType: string;
  readonly body: string;
}

const HTML = 'text/html; charset=utf-8';
const CSS = 'text/css; charset=utf-8';

/** @returns a function from a path to its content; null if there is none */
export function createPages(metrics: Metrics): (path: string) => Promise<Content | null> {
  const pages = new Map<string, () => Content | Promise<Content>>([
    ['/', once(() => app('index.html', HTML))],
    ['/app.js', once(() => app('app.js', 'text/javascript; charset=utf-8'))],
    ['/style.css', once(() => app('style.css', CSS))],
    ['/openapi.json', once(() => json(openApiDocument()))],
    ['/openapi-admin.json', once(() => json(adminDocument()))],
    ['/metrics', async () => ({ contentType: metrics.contentType, body: await metrics.text() })],
  ]);
  return async (path) => (await pages.get(path)?.()) ?? null;
}

/** A constant page is made at its first request, not at the start. */
function once(make: () => Content): () => Content {
  let made: Content | null = null;
  return () => {
    made ??= make();
    return made;
  };
}

function json(document: object): Content {
  return { contentType: 'application/json', body: `${JSON.stringify(document, null, 2)}\n` };
}

/** A file of the console. */
function app(name: string, contentType: string): Content {
  const body = consoleFiles()[name];
  if (body === undefined) throw new Error(`the program was bundled without ${name} of the console`);
  return { contentType, body };
}
