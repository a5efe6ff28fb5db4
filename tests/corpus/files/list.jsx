const List = ({ rows }) => (
  <>
    <style>{css}</style>
    <table className="rows"><tbody>
      {rows.map((r) => <tr key={r}><td aria-hidden="true">{r}</td></tr>)}
    </tbody></table>
  </>
)
