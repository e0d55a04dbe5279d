//! Links between the documents.

use crate::support::documents::documents;

/// A link to a file of the repository leads to one.
#[test]
fn every_link_of_the_documents_leads_somewhere() {
    for document in documents() {
        let text = std::fs::read_to_string(&document).expect("read");
        for (_, link) in text
            .match_indices("](")
            .filter_map(|(at, _)| text[at + 2..].split_once(')').map(|(link, _)| (at, link)))
        {
            if link.starts_with("http") || link.starts_with('#') {
                continue;
            }
            let file = link.split('#').next().expect("a first part");
            let target = document.parent().expect("a folder").join(file);
            assert!(target.exists(), "{}: {link} leads nowhere", document.display());
        }
    }
}
