export function Card({ title, items }: { title: string; items: Array<Item> }) {
  return (
    <section className="card" hidden={!items.length}>
      {/* The title is plain text. */}
      <h2>{title}</h2>
      <ul>{items.map((item) => <li key={item.id}>{item.name}</li>)}</ul>
      <p style={{ display: "none" }}>Nothing to show.</p>
    </section>
  );
}
