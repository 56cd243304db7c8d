/**
 * What a lab changes in requests and answers. The `Pipeline` of an appliance has no interventions.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Exchange, Intervention } from './exchange.ts';
import type { Route } from './routes.ts';

export interface Interventions {
  /** Answers a request for an operation. @returns false, with nothing done, for a request to the API */
  control(request: IncomingMessage, response: ServerResponse): boolean;
  /**
   * Called for every request to the API; may change its target.
   *
   * @param route null where there is none
   * @param baseUrl as of problemAnswer
   */
  begin(request: IncomingMessage, exchange: Exchange, route: Route | null, baseUrl: string): Intervention;
  /** For the console: a LabState. */
  readonly shown: () => object;
}
