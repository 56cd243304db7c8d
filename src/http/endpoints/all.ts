/** Every endpoint, in the order of the OpenAPI document. polka takes the first of two that match: fixed paths first. */
import type { Route } from '../routes.ts';
import { AUTHORIZATION_SERVER } from './authorization-server.ts';
import { CHANGES } from './changes.ts';
import { DETECTION } from './detection.ts';
import { HEALTH } from './health.ts';
import { ME } from './me.ts';
import { OPENAPI } from './openapi.ts';
import { PERIOD } from './period.ts';
import { PHOTO } from './photo.ts';
import { SCHEMA } from './schema.ts';
import { TOKEN } from './token.ts';

/** Those that tell anybody what there is: [server] discovery. */
export const DISCOVERY: readonly Route[] = [AUTHORIZATION_SERVER, OPENAPI];

export const ENDPOINTS: readonly Route[] = [
  ...[CHANGES, PERIOD, DETECTION, SCHEMA, PHOTO, ME, TOKEN, AUTHORIZATION_SERVER, OPENAPI, HEALTH],
];
