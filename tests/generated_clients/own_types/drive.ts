// As drive.py, with the generated types: `node built/drive.js URL`.
import createClient from "openapi-fetch";
import type { components, paths } from "./quorate.js";

type Line = components["schemas"]["OrdersLine"];
type Order = components["schemas"]["OrdersOrder"];

const [url] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url ?? "" });
const params = { path: { name: "typescript" } };

async function place(order: Order): Promise<Order | null | undefined> {
  const { data } = await client.POST("/v1/objects/orders/{name}/place", { params, body: { who: "ann", order } });
  return data?.result;
}

async function add(who: string, line: Line) {
  const { data } = await client.POST("/v1/objects/orders/{name}/add", { params, body: { who, line } });
  return data?.outcome;
}

const counts = (order: Order | undefined) => order?.lines.map((line) => [line.item, line.count ?? 1]);

// What the types must refuse. It is never called: only the compiler looks at it.
export function refused(): unknown[] {
  // @ts-expect-error: the item is missing
  const line: Line = { count: 1 };
  // @ts-expect-error: a number
  const other: Line = { item: "book", count: "two" };
  // @ts-expect-error: no such member
  const more: Line = { item: "book", much: 2 };
  // @ts-expect-error: no such state
  const order: Order = { lines: [], state: "sent", note: null };
  return [line, other, more, order];
}

const first: Order = { lines: [{ item: "book", count: 2 }], state: "open", note: null };
const before = await place(first);
const added = [await add("ann", { item: "pen" }), await add("bob", { item: "pen" })];
const replaced = await place({ lines: [], state: "paid", note: "soon", instead_of: first });
const everybody = await client.POST("/v1/objects/orders/{name}/all", { params });
const ann = everybody.data?.result?.ann;
console.log(
  JSON.stringify({
    before,
    added,
    replaced: counts(replaced ?? undefined),
    state: ann?.state,
    note: ann?.note,
    instead_of: counts(ann?.instead_of),
  }),
);
